// Start and end of the bars of a run's waterfall, in percent of its duration.

import type { Entry } from "./timeline";

export interface Span {
  from: number;
  to: number;
}

export interface Bar {
  /** Both from 0 to 100. */
  left: number;
  width: number;
}

/** From the first known time to the last; `now` for active entries. */
export function spanOf(entries: readonly Entry[], now: number): Span | undefined {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const entry of entries) {
    if (entry.start === undefined) continue;
    from = Math.min(from, entry.start);
    to = Math.max(to, entry.open === true ? now : (entry.end ?? entry.start));
  }
  return from === Number.POSITIVE_INFINITY ? undefined : { from, to: Math.max(to, from) };
}

/** Undefined without a time; a single time is a thin mark. */
export function barOf(entry: Entry, span: Span, now: number): Bar | undefined {
  if (entry.start === undefined) return undefined;
  const whole = Math.max(span.to - span.from, 1);
  const end = entry.open === true ? now : (entry.end ?? entry.start);
  const left = clamp(((entry.start - span.from) / whole) * 100);
  const width = clamp(((end - entry.start) / whole) * 100);
  return { left: Math.min(left, 99.5), width: Math.min(Math.max(width, 0.5), 100 - Math.min(left, 99.5)) };
}

function clamp(percent: number): number {
  return Math.min(100, Math.max(0, percent));
}
