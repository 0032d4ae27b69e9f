// Rates, peaks and table rows of figures.
import { expect, test } from "vitest";
import type { Overview, Step } from "../../api/types";
import { busySteps, failureRate, hasFigures, peak, perMinute, rangeOf, stacked, times } from "./series";

function step(at: string, runs: number): Step {
  return {
    at,
    runs,
    completed: runs,
    failed: 0,
    cancelled: 0,
    p50_ms: null,
    p95_ms: null,
    model_calls: 0,
    input_tokens: null,
    output_tokens: null,
    cost_usd: null,
  };
}

const overview: Overview = {
  now_at: "2026-11-15T15:30:00.000Z",
  minutes: 1440,
  step_s: 1200,
  host: { version: "0.1.0", started_at: "2026-11-15T10:00:00.000Z", memory_bytes: null, epoch: 1 },
  store: { kind: "sqlite", ok: true, sync: "full", size_bytes: null },
  queue: { queued: 0, running: 0, waiting_approvals: 0, deliveries_waiting: 0, deliveries_failed: 0, deliveries_unknown: 0 },
  series: [step("2026-11-15T15:00:00.000Z", 40), step("2026-11-15T15:20:00.000Z", 20)],
  models: [],
  totals: step("", 60),
};

test("every step counts with its full length, the current one too", () => {
  expect(perMinute(overview, (each) => each.runs)).toEqual([2, 1]);
});

test("times are Unix seconds", () => {
  expect(times(overview)).toEqual([1794754800, 1794756000]);
});

test("the peak is the first of equal maxima, and empty lines have none", () => {
  expect(peak([null, 3, 5, 5])).toEqual({ value: 5, index: 2 });
  expect(peak([null, 0])).toBeNull();
});

test("rows are the steps with data, newest first", () => {
  const lines = [
    { label: "a", color: "", values: [1, 0, null, 0] },
    { label: "b", color: "", values: [0, 0, null, 2] },
  ];
  expect(busySteps(lines, 4)).toEqual([3, 0]);
  expect(lines.map(hasFigures)).toEqual([true, true]);
  expect(hasFigures({ label: "c", color: "", values: [null, 0] })).toBe(false);
});

test("an unknown range is one hour, and without runs there is no failure rate", () => {
  expect([rangeOf("7d"), rangeOf("9y"), rangeOf(undefined)]).toEqual(["7d", "1h", "1h"]);
  expect([failureRate({ runs: 4, failed: 1 }), failureRate({ runs: 0, failed: 0 })]).toEqual([0.25, null]);
});

test("bars are stacked, the first the tallest, and unknown values stay unknown", () => {
  const lines = [
    { label: "a", color: "", values: [1, null, 3] },
    { label: "b", color: "", values: [2, null, null] },
  ];
  expect(stacked(lines)).toEqual([
    [3, null, 3],
    [2, null, null],
  ]);
});
