import { expect, test } from "vitest";
import { baseOf, hostUrl, inside } from "./base";

test("the base path is read from the page", () => {
  expect(baseOf("/")).toBe("");
  expect(baseOf("/greenroom/")).toBe("/greenroom");
  expect(baseOf("/a/b")).toBe("/a/b");
  // The development server leaves it as it is written.
  expect(baseOf("./")).toBe("");
  expect(baseOf(null)).toBe("");
});

test("browser URLs become paths of the interface", () => {
  expect(inside("/runs/r1", "")).toBe("/runs/r1");
  expect(inside("/greenroom/runs/r1", "/greenroom")).toBe("/runs/r1");
  expect(inside("/greenroom", "/greenroom")).toBe("/");
  expect(inside("/greenroom/", "/greenroom")).toBe("/");
  expect(inside("/greenrooms/x", "/greenroom")).toBe("/greenrooms/x");
});

test("paths become URLs, absolute URLs stay", () => {
  expect(hostUrl("/v1/runs", "/greenroom")).toBe("/greenroom/v1/runs");
  expect(hostUrl("https://example.com/greenroom/v1/runs", "/greenroom")).toBe("https://example.com/greenroom/v1/runs");
});
