// Filters of the audit: those the host knows go to it, the others are applied to what it sends.
import type { Query } from "@/api/client";
import type { AuditRecord } from "@/api/types";
import { RANGES, type Range } from "../overview/series";
import { startOf } from "./filters";
import type { Fits } from "./scan";

export interface AuditFilters {
  run_id?: string;
  who?: string;
  method?: string;
  outcome?: string;
  time?: string;
}

export function auditQuery({ run_id, method, outcome }: AuditFilters): Query {
  return { run_id, method, ...(outcome === "denied" ? { denied: true } : { code: outcome }) };
}

/** Records come in the order in which calls ended, `at` is when they began: a call may have waited so long. */
const LONGEST_CALL_MINUTES = 24 * 60;

/** The rest, or nothing when the host does it all. */
export function auditFits({ who, time }: AuditFilters, now: number): Fits<AuditRecord> | undefined {
  const minutes = Object.hasOwn(RANGES, time ?? "") ? RANGES[time as Range] : undefined;
  if (!who && minutes === undefined) return undefined;
  const since = minutes === undefined ? "" : startOf(minutes, now);
  const end = minutes === undefined ? "" : startOf(minutes + LONGEST_CALL_MINUTES, now);
  const wanted = who?.toLowerCase();
  return (record) => {
    if (record.at < end) return "end";
    if (record.at < since) return false;
    if (!wanted) return true;
    return [record.agent, record.runner, record.plugin].some((name) => name?.toLowerCase().includes(wanted));
  };
}
