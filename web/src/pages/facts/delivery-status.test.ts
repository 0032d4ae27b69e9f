// Actions allowed in each status of a delivery.
import { expect, test } from "vitest";
import { DELIVERY_STATUSES, deliveryTone, mayDiscard, mayRetry } from "./delivery-status";

test("only what failed or is unknown is sent again", () => {
  expect(DELIVERY_STATUSES.filter(mayRetry)).toEqual(["failed", "unknown"]);
});

test("what is being sent, has arrived or was discarded is not discarded", () => {
  expect(DELIVERY_STATUSES.filter(mayDiscard)).toEqual(["pending", "failed", "unknown"]);
});

test("a state of a newer host is shown without a tone", () => {
  expect(deliveryTone("failed")).toBe("bad");
  expect(deliveryTone("postponed")).toBe("neutral");
});
