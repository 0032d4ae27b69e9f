// History and live runs in one order.
import { expect, test } from "vitest";
import type { Approval, Artifact, Run, TranscriptItem } from "@/api/types";
import { HistoryEntries, merge, type StoredFacts } from "./merge";

function item(id: string, role: TranscriptItem["role"], run: string, more: Partial<TranscriptItem> = {}): TranscriptItem {
  return { item_id: id, conversation_id: "c", seq: 0, role, text: id, run_id: run, event_id: `event-${run}`, created_at: "2026-01-01T00:00:00Z", ...more };
}

const kept = (items: TranscriptItem[], more: Partial<StoredFacts> = {}): StoredFacts => ({ items, runs: new Map<string, Run>(), approvals: [], artifacts: [], ...more });
const ids = (entries: { id: string }[]) => entries.map((entry) => entry.id);

test("output of a live run is not taken from history and follows its message", () => {
  const history = new HistoryEntries().of(kept([item("u1", "user", "r1"), item("a1", "assistant", "r1"), item("u2", "user", "r2")]));
  const live = [{ hostRunId: "r1", eventId: "event-r1", entries: [{ kind: "answer" as const, id: "r1.1", runId: "r1", text: "live", at: null, streaming: true }] }];
  expect(ids(merge(history, live))).toEqual(["u1", "r1.1", "u2"]);
});

test("a message that history has is not shown twice", () => {
  const history = new HistoryEntries().of(kept([item("u1", "user", "r1")]));
  const user = { kind: "user" as const, id: "event-r1", runId: "r1", eventId: "event-r1", text: "x", files: [], at: null, from: null, delivery: null };
  expect(ids(merge(history, [{ hostRunId: "r1", eventId: "event-r1", entries: [user] }]))).toEqual(["u1"]);
});

test("a failure follows the last item of its run", () => {
  const run = { run_id: "r1", agent: "a", status: "failed", error: { code: "runner.crashed", message: "gone" } } as Run;
  const entries = new HistoryEntries().of(kept([item("u1", "user", "r1"), item("u2", "user", "r2")], { runs: new Map([["r1", run]]) }));
  expect(ids(entries)).toEqual(["u1", "r1.end", "u2"]);
});

test("an answered approval follows its tool call", () => {
  const tool = item("t1", "tool", "r1", { metadata: { tool_call_id: "c1", tool_name: "x" } });
  const approval = { approval_id: "apr", run_id: "r1", agent: "a", action: "tool.call", target: { tool_call_id: "c1" }, status: "denied" } as unknown as Approval;
  const entries = new HistoryEntries().of(kept([item("u1", "user", "r1"), tool, item("a1", "assistant", "r1")], { approvals: [approval] }));
  expect(ids(entries)).toEqual(["u1", "t1", "apr", "a1"]);
});

test("parsed items stay the same objects, so that rows are not rendered again", () => {
  const history = new HistoryEntries();
  const items = [item("u1", "user", "r1")];
  expect(history.of(kept(items))[0]).toBe(history.of(kept([...items]))[0]);
});

test("files created by a run follow its messages; uploads and files already named do not", () => {
  const artifact = (id: string, run: string | null) => ({ artifact_id: id, run_id: run, mime_type: "text/csv", size_bytes: 1 }) as Artifact;
  const answer = item("a1", "assistant", "r1", { segments: [{ type: "file", artifact_id: "named" }] });
  const artifacts = [artifact("upload", null), artifact("named", "r1"), artifact("made", "r1")];
  const entries = new HistoryEntries().of(kept([item("u1", "user", "r1"), answer, item("u2", "user", "r2")], { artifacts }));
  expect(ids(entries)).toEqual(["u1", "a1", "a1.files", "made", "u2"]);
});

test("the list is stable while the facts do not change, so that rows are not measured again", () => {
  const history = new HistoryEntries();
  const one = kept([item("u1", "user", "r1")]);
  expect(merge(history.of({ ...one }), [])).toBe(merge(history.of({ ...one }), []));
  const run = { run_id: "r1", agent: "a", status: "cancelled" } as Run;
  expect(ids(history.of({ ...one, runs: new Map([["r1", run]]) }))).toEqual(["u1", "r1.end"]);
});
