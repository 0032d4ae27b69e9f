import { expect, test } from "vitest";
import { baseOf, hostUrl, inside } from "./base";

test("the path of the host is read from its page", () => {
  expect(baseOf("/")).toBe("");
  expect(baseOf("/greenroom/")).toBe("/greenroom");
  expect(baseOf("/a/b")).toBe("/a/b");
  // The development server leaves it as it is written.
  expect(baseOf("./")).toBe("");
  expect(baseOf(null)).toBe("");
});

test("addresses of the browser become paths of the interface", () => {
  expect(inside("/runs/r1", "")).toBe("/runs/r1");
  expect(inside("/greenroom/runs/r1", "/greenroom")).toBe("/runs/r1");
  expect(inside("/greenroom", "/greenroom")).toBe("/");
  expect(inside("/greenroom/", "/greenroom")).toBe("/");
  expect(inside("/greenrooms/x", "/greenroom")).toBe("/greenrooms/x");
});

test("paths of the host become addresses, and whole addresses stay", () => {
  expect(hostUrl("/v1/runs", "/greenroom")).toBe("/greenroom/v1/runs");
  expect(hostUrl("https://example.com/greenroom/v1/runs", "/greenroom")).toBe("https://example.com/greenroom/v1/runs");
});
