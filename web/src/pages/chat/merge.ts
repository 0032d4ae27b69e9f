// Merges stored history and live runs in reading order.
import type { Approval, Artifact, Run, TranscriptItem } from "@/api/types";
import type { Entry, FileRef } from "./entry";
import { endOfRun, entriesOfItem } from "./from-history";
import { entryOfApproval, withQuestions } from "./questions";

/** A run that this page follows. */
export interface LiveEntries {
  hostRunId: string | null;
  /** The event that started it. */
  eventId: string;
  entries: Entry[];
}

/** Stored facts of a conversation. */
export interface StoredFacts {
  items: TranscriptItem[];
  runs: ReadonlyMap<string, Run>;
  approvals: Approval[];
  artifacts: Artifact[];
}

/** Entries of stored items, files and ended runs; items are parsed once and stay the same objects. */
export class HistoryEntries {
  #byItem = new Map<string, Entry[]>();
  #of: StoredFacts | null = null;
  #entries: Entry[] = [];

  /** The same list until the facts change. */
  of(kept: StoredFacts): Entry[] {
    const before = this.#of;
    const isSame = before?.items === kept.items && before.runs === kept.runs && before.approvals === kept.approvals && before.artifacts === kept.artifacts;
    if (!isSame) this.#entries = this.#ordered(kept);
    this.#of = kept;
    return this.#entries;
  }

  #ordered({ items, runs, approvals, artifacts }: StoredFacts): Entry[] {
    const lastOf = new Map<string, string>();
    for (const item of items) if (item.run_id) lastOf.set(item.run_id, item.item_id);
    const said = items.map((item) => this.#entriesOf(item));
    const made = filesByRun(artifacts, said.flat());
    const entries = items.flatMap((item, index): Entry[] => {
      const own = said[index] ?? [];
      const runId = item.run_id;
      if (!runId || lastOf.get(runId) !== item.item_id) return own;
      const run = runs.get(runId);
      const end = run ? endOfRun(run) : null;
      return [...own, ...(made.get(runId) ?? []), ...(end ? [end] : [])];
    });
    const questions = approvals.filter((approval) => lastOf.has(approval.run_id)).map(entryOfApproval);
    // Of ended runs only approvals of tool calls are shown; others are in the approvals list.
    return withQuestions(entries, questions.filter((question) => question.callId !== null));
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
 * Output of a live run is not taken from history; it follows the message that history has of it,
 * or at the end.
 */
export function merge(history: Entry[], live: LiveEntries[]): Entry[] {
  if (live.length === 0) return history;
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

/** Files created by runs that no message names. */
function filesByRun(artifacts: Artifact[], said: Entry[]): Map<string, Entry[]> {
  const named = new Set(said.flatMap((entry) => ("files" in entry ? entry.files.map((file) => file.artifactId) : [])));
  const made = new Map<string, Entry[]>();
  for (const artifact of [...artifacts].reverse()) {
    const runId = artifact.run_id;
    if (!runId || named.has(artifact.artifact_id)) continue;
    const file: FileRef = { artifactId: artifact.artifact_id, name: artifact.name ?? null, mime: artifact.mime_type, size: artifact.size_bytes, url: null };
    made.set(runId, [...(made.get(runId) ?? []), { kind: "files", id: artifact.artifact_id, runId, files: [file] }]);
  }
  return made;
}
