// Filters survive the URL.
import { expect, test } from "vitest";
import { lastPart, readFilters, startOf, withFilters } from "./filters";

test("only the named filters with a value are read", () => {
  expect(readFilters("?run_id=run_1&method=&code=%20&other=x", ["run_id", "method", "code"])).toEqual({ run_id: "run_1" });
});

test("a change keeps the other filters, and an empty value removes one", () => {
  expect(withFilters("run_id=run_1&method=state.get", { method: " history.page " })).toBe("run_id=run_1&method=history.page");
  expect(withFilters("run_id=run_1&method=state.get", { run_id: "", method: null })).toBe("");
});

test("values with any characters survive", () => {
  const search = withFilters("", { q: "数据库 & a=b#c" });
  expect(readFilters(search, ["q"])).toEqual({ q: "数据库 & a=b#c" });
});

test("an id in a path may contain any character", () => {
  const ids = ["plain", "a/b", "100%", "%41", "中文 ?#&"];
  expect(ids.map((id) => lastPart(`/events/${encodeURIComponent(id)}`))).toEqual(ids);
  expect(lastPart("/events/%zz")).toBe("%zz");
});

test("a span of time begins on a full minute", () => {
  expect(startOf(60, Date.parse("2026-11-15T15:25:59.999Z"))).toBe("2026-11-15T14:25:00.000Z");
});

test("an id keeps the spaces around it", () => {
  expect(readFilters("?id=%20%20lead%20", ["id"] as const)).toEqual({ id: "  lead " });
  expect(readFilters(`?${withFilters("", { id: "  lead " })}`, ["id"] as const)).toEqual({ id: "  lead " });
});
