// Figures over time, prepared for charts and tables.
import type { Overview, Step } from "../../api/types";

/** One line of a chart: a value per step, null if unknown. */
export interface Line {
  label: string;
  color: string;
  values: (number | null)[];
}

/** The ranges: value in the URL and minutes requested from the host. */
export const RANGES = { "1h": 60, "24h": 1440, "7d": 10_080 } as const;
export type Range = keyof typeof RANGES;
export const RANGE_NAMES = Object.keys(RANGES) as Range[];

export function rangeOf(text: string | undefined): Range {
  return RANGE_NAMES.find((name) => name === text) ?? "1h";
}

/** Unix seconds of each step, for the charts. */
export function times(overview: Overview): number[] {
  return overview.series.map((step) => Date.parse(step.at) / 1000);
}

/** Counts per step as rates per minute; the current step is incomplete. */
export function perMinute(overview: Overview, count: (step: Step) => number): number[] {
  return overview.series.map((step) => (count(step) * 60) / overview.step_s);
}

/** Whether a line has anything to show. */
export function hasFigures(line: Line): boolean {
  return line.values.some((value) => value !== null && value !== 0);
}

/** Stacked bars: each line includes all later ones, so the first is the tallest. */
export function stacked(lines: readonly Line[]): (number | null)[][] {
  return lines.map((_, first) =>
    (lines[0]?.values ?? []).map((__, index) => {
      const rest = lines.slice(first).map((line) => line.values[index]);
      return rest.every((value) => value === null) ? null : rest.reduce<number>((sum, value) => sum + (value ?? 0), 0);
    }),
  );
}

/** The highest value of a line and its step. */
export function peak(values: readonly (number | null)[]): { value: number; index: number } | null {
  let best: { value: number; index: number } | null = null;
  values.forEach((value, index) => {
    if (value !== null && value > (best?.value ?? 0)) best = { value, index };
  });
  return best;
}

/** The steps with data, newest first: the rows of a chart's table. */
export function busySteps(lines: readonly Line[], steps: number): number[] {
  const busy: number[] = [];
  for (let index = steps - 1; index >= 0; index -= 1) {
    if (lines.some((line) => line.values[index])) busy.push(index);
  }
  return busy;
}

/** Share of runs that failed, 0 to 1; null without runs. */
export function failureRate(totals: { runs: number; failed: number }): number | null {
  return totals.runs > 0 ? totals.failed / totals.runs : null;
}
