// The filters of the list of runs, as in the URL.

import { RUN_STATUSES } from "@/api/run-status";
import type { Run, RunStatus } from "@/api/types";

export const WINDOWS = { hour: 3_600_000, day: 86_400_000, week: 604_800_000 } as const;
export type Window = keyof typeof WINDOWS;

export interface Filters {
  status?: RunStatus;
  agent?: string;
  conversation?: string;
  window?: Window;
  code?: string;
  /** Any part of an id. */
  id?: string;
}

/** Invalid values are ignored. */
export function readFilters(search: string): Filters {
  const params = new URLSearchParams(search);
  const value = (name: string) => params.get(name)?.trim() ?? "";
  const filters: Filters = {};
  const status = RUN_STATUSES.find((one) => one === value("status"));
  const window = (Object.keys(WINDOWS) as Window[]).find((one) => one === value("time"));
  if (status !== undefined) filters.status = status;
  if (window !== undefined) filters.window = window;
  if (value("agent") !== "") filters.agent = value("agent");
  if (value("conversation") !== "") filters.conversation = value("conversation");
  if (value("code") !== "") filters.code = value("code");
  if (value("id") !== "") filters.id = value("id");
  return filters;
}

export function writeFilters(filters: Filters): string {
  const params = new URLSearchParams();
  const { status, agent, conversation, window, code, id } = filters;
  for (const [name, value] of Object.entries({ status, agent, conversation, time: window, code, id })) {
    if (value !== undefined && value !== "") params.set(name, value);
  }
  return params.toString();
}

/** The filters that the host applies; ids are matched here. */
export function queryOf(filters: Filters, now: number): Record<string, string | undefined> {
  const since = filters.window === undefined ? undefined : new Date(now - WINDOWS[filters.window]).toISOString();
  return { status: filters.status, agent: filters.agent, conversation_id: filters.conversation, error_code: filters.code, since };
}

export function hasId(run: Run, part: string): boolean {
  const wanted = part.trim().toLowerCase();
  return [run.run_id, run.event_id, run.conversation_id ?? ""].some((id) => id.toLowerCase().includes(wanted));
}

/** Merges newer pages into the loaded runs: each run once, newest first. */
export function merged(known: readonly Run[], page: readonly Run[]): Run[] {
  const byId = new Map(known.map((run) => [run.run_id, run]));
  for (const run of page) byId.set(run.run_id, run);
  return [...byId.values()].sort((a, b) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : a.run_id < b.run_id ? 1 : -1));
}
