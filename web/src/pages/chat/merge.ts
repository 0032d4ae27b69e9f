// History, ends of runs and live runs, in the order in which a reader expects them.
import type { Approval, Run, TranscriptItem } from "@/api/types";
import type { Entry } from "./entry";
import { endOfRun, entriesOfItem } from "./from-history";
import { entryOfApproval, withQuestions } from "./questions";

/** A run that this page follows. */
export interface LiveEntries {
  hostRunId: string | null;
  /** The event that started it. */
  eventId: string;
  entries: Entry[];
}

/** Kept items with how their runs ended; items are parsed once and stay the same objects. */
export class HistoryEntries {
  #byItem = new Map<string, Entry[]>();

  of(items: TranscriptItem[], runs: ReadonlyMap<string, Run>, approvals: Approval[]): Entry[] {
    const lastOf = new Map<string, string>();
    for (const item of items) if (item.run_id) lastOf.set(item.run_id, item.item_id);
    const entries = items.flatMap((item) => {
      const said = this.#entriesOf(item);
      const isLast = item.run_id && lastOf.get(item.run_id) === item.item_id;
      const run = isLast && item.run_id ? runs.get(item.run_id) : undefined;
      const end = run ? endOfRun(run) : null;
      return end ? [...said, end] : said;
    });
    const shown = new Set(lastOf.keys());
    return withQuestions(entries, approvals.filter((approval) => shown.has(approval.run_id)).map(entryOfApproval).filter(isAboutCall));
  }

  #entriesOf(item: TranscriptItem): Entry[] {
    let entries = this.#byItem.get(item.item_id);
    if (!entries) {
      entries = entriesOfItem(item);
      this.#byItem.set(item.item_id, entries);
    }
    return entries;
  }
}

/**
 * What a live run says itself is not taken from history; it stands behind the message that history has of it,
 * or at the end.
 */
export function merge(history: Entry[], live: LiveEntries[]): Entry[] {
  const byRun = new Map(live.filter((run) => run.hostRunId).map((run) => [run.hostRunId as string, run]));
  const kept = history.filter((entry) => entry.kind === "user" || !entry.runId || !byRun.has(entry.runId));
  const events = new Set(kept.map((entry) => (entry.kind === "user" ? entry.eventId : null)));
  const place = new Map<string, number>();
  kept.forEach((entry, index) => {
    if (entry.kind === "user" && entry.runId && byRun.has(entry.runId)) place.set(entry.runId, index);
  });
  const behind = new Map<number, Entry[]>();
  const atEnd: Entry[] = [];
  for (const run of live) {
    const fresh = run.entries.filter((entry) => entry.kind !== "user" || !events.has(entry.eventId));
    const index = run.hostRunId ? place.get(run.hostRunId) : undefined;
    if (index === undefined) atEnd.push(...fresh);
    else behind.set(index, [...(behind.get(index) ?? []), ...fresh]);
  }
  if (behind.size === 0) return [...kept, ...atEnd];
  return [...kept.flatMap((entry, index) => [entry, ...(behind.get(index) ?? [])]), ...atEnd];
}

/** Of what is over only questions about calls have a place; others are in the list of approvals. */
function isAboutCall(entry: { callId: string | null }): boolean {
  return entry.callId !== null;
}
