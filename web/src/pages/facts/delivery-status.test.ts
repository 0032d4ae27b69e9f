// Actions allowed in each status of a delivery.
import { expect, test } from "vitest";
import { DELIVERY_STATUSES, deliveryTone, mayDiscard, mayRetry } from "./delivery-status";

test("only failed and unknown deliveries are sent again", () => {
  expect(DELIVERY_STATUSES.filter(mayRetry)).toEqual(["failed", "unknown"]);
});

test("claimed, done and discarded deliveries cannot be discarded", () => {
  expect(DELIVERY_STATUSES.filter(mayDiscard)).toEqual(["pending", "failed", "unknown"]);
});

test("a status of a newer host has no tone", () => {
  expect(deliveryTone("failed")).toBe("bad");
  expect(deliveryTone("postponed")).toBe("neutral");
});
