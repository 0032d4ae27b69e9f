// Texts with values.
import { expect, test } from "vitest";
import { fill } from "./fill";

test("names are replaced and numbers are grouped", () => {
  expect(fill("{who} has {count} runs", "en", { who: "Ada", count: 1200 })).toBe("Ada has 1,200 runs");
});

test("a plural form follows its number", () => {
  expect(fill("{n} {n|run|runs}", "en", { n: 1 })).toBe("1 run");
  expect(fill("{n} {n|run|runs}", "en", { n: 2 })).toBe("2 runs");
});

test("a value that is missing stays visible", () => {
  expect(fill("hello {who}", "en", {})).toBe("hello {who}");
});
