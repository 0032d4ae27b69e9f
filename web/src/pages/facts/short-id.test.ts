// Ids stay recognisable.
import { expect, test } from "vitest";
import { shortId } from "./short-id";

test("short names stay whole, long ids keep their prefix and their end", () => {
  expect(shortId("helpdesk-4711")).toBe("helpdesk-4711");
  expect(shortId("run_01a1dfcfa8b572c288d83d82777b46f0")).toBe("run_…777b46f0");
  expect(shortId("01a1dfcf-6252-73e7-9258-708607495c2f")).toBe("01a1df…07495c2f");
});
