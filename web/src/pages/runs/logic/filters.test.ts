// Filters in the URL, and merging of newer pages.

import { describe, expect, it } from "vitest";
import type { Run } from "@/api/types";
import { hasId, merged, queryOf, readFilters, writeFilters } from "./filters";
import { story } from "./fixture";

const run = (run_id: string, created_at: string, more: Partial<Run> = {}): Run => ({ ...story().run, run_id, created_at, ...more });

describe("filters", () => {
  it("survive the URL", () => {
    const filters = { status: "failed", agent: "office & co", conversation: "c/1", window: "day", code: "runner.crashed", id: "01a" } as const;
    expect(readFilters(`?${writeFilters(filters)}`)).toEqual(filters);
  });

  it("ignore invalid values", () => {
    expect(readFilters("?status=odd&time=year&agent=&x=1")).toEqual({});
  });

  it("become a query to the host with a time", () => {
    const now = Date.parse("2026-01-02T00:00:00Z");
    expect(queryOf({ window: "hour", id: "x" }, now)).toEqual({
      status: undefined, agent: undefined, conversation_id: undefined, error_code: undefined, since: "2026-01-01T23:00:00.000Z",
    });
  });

  it("find a run by any part of its ids", () => {
    expect(hasId(run("run_01ABC", ""), "abc")).toBe(true);
    expect(hasId(run("run_01ABC", ""), "xyz")).toBe(false);
  });
});

describe("merged", () => {
  it("keeps the newest version of each run, newest run first", () => {
    const known = [run("b", "2"), run("a", "1", { status: "running" })];
    const page = [run("c", "3"), run("a", "1", { status: "failed" })];
    expect(merged(known, page).map((one) => `${one.run_id} ${one.status}`)).toEqual(["c completed", "b completed", "a failed"]);
  });
});
