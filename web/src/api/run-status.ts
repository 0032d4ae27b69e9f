// The statuses of runs: filters, badges and pages read them from this table; their texts are in i18n/*/runs.ts.
import type { RunStatus } from "./generated/schemas";

interface Facts {
  tone: "neutral" | "info" | "ok" | "bad";
  isOpen: boolean;
  /** Its badge pulses. */
  live?: boolean;
}

/** In the order of the filter. */
export const RUN_STATUS: Record<RunStatus, Facts> = {
  queued: { tone: "neutral", isOpen: true },
  running: { tone: "info", isOpen: true, live: true },
  completed: { tone: "ok", isOpen: false },
  failed: { tone: "bad", isOpen: false },
  cancelled: { tone: "neutral", isOpen: false },
  timeout: { tone: "bad", isOpen: false },
};

export const RUN_STATUSES = Object.keys(RUN_STATUS) as readonly RunStatus[];
export const ENDED: ReadonlySet<RunStatus> = new Set(RUN_STATUSES.filter((status) => !RUN_STATUS[status].isOpen));
export const FAILED: ReadonlySet<RunStatus> = new Set(RUN_STATUSES.filter((status) => RUN_STATUS[status].tone === "bad"));
