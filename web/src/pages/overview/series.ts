// Figures of the host over time, made ready for charts and for people who read tables.
import type { Overview, Step } from "../../api/types-overview";

/** One line of a chart: a value for each step, null where nothing is known. */
export interface Line {
  label: string;
  color: string;
  values: (number | null)[];
}

/** The range switch: what the address says, and what the host is asked for. */
export const RANGES = { "1h": 60, "24h": 1440, "7d": 10_080 } as const;
export type Range = keyof typeof RANGES;
export const RANGE_NAMES = Object.keys(RANGES) as Range[];

export function rangeOf(text: string | undefined): Range {
  return RANGE_NAMES.find((name) => name === text) ?? "1h";
}

/** Unix seconds of each step, as charts want them. */
export function times(overview: Overview): number[] {
  return overview.series.map((step) => Date.parse(step.at) / 1000);
}

/** A count of each step as a rate per minute; the current step is not over and grows until it is. */
export function perMinute(overview: Overview, count: (step: Step) => number): number[] {
  return overview.series.map((step) => (count(step) * 60) / overview.step_s);
}

/** Whether a line has anything to show. */
export function hasFigures(line: Line): boolean {
  return line.values.some((value) => value !== null && value !== 0);
}

/** Bars stand on each other: each line is drawn with all behind it, so the first one is the tallest. */
export function stacked(lines: readonly Line[]): (number | null)[][] {
  return lines.map((_, first) =>
    (lines[0]?.values ?? []).map((__, index) => {
      const rest = lines.slice(first).map((line) => line.values[index]);
      return rest.every((value) => value === null) ? null : rest.reduce<number>((sum, value) => sum + (value ?? 0), 0);
    }),
  );
}

/** The highest value of a line and the step it was reached in. */
export function peak(values: readonly (number | null)[]): { value: number; index: number } | null {
  let best: { value: number; index: number } | null = null;
  values.forEach((value, index) => {
    if (value !== null && value > (best?.value ?? 0)) best = { value, index };
  });
  return best;
}

/** The steps in which anything happened, newest first: the rows of a chart's table. */
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
