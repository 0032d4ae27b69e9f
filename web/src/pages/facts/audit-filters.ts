// Filters of the audit: some are applied by the host, the others here.
import type { Query } from "@/api/client";
import type { AuditRecord } from "@/api/types";
import { RANGES, type Range } from "../overview/series";
import { startOf } from "./filters";
import type { Matches } from "./scan";

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

/** Records are ordered by the end of calls while `at` is their start: maximum duration of a call. */
const LONGEST_CALL_MINUTES = 24 * 60;

/** The remaining filters, or undefined if the host applies all. */
export function auditMatches({ who, time }: AuditFilters, now: number): Matches<AuditRecord> | undefined {
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
