// Live messages of AG-UI as entries.
import type { Message } from "@ag-ui/core";
import { expect, test } from "vitest";
import { entriesOfMessages } from "./from-messages";

const context = { hostRunId: "run_1", live: false, seenAt: () => null };
const call = (id: string, callId: string): Message => ({
  id,
  role: "assistant",
  toolCalls: [{ id: callId, type: "function", function: { name: "project_cli", arguments: '{"module":"calendar"}' } }],
});

test("a call, its result and its card are one entry", () => {
  const operations = [{ createSurface: { surfaceId: "s" } }];
  const messages = [
    { id: "m1", role: "user", content: "hi" },
    call("run_1.1", "c1"),
    { id: "run_1.2.result", role: "tool", toolCallId: "c1", content: '{"ok":true}', metadata: { tool_agent_output: { status: "success" } } },
    { id: "a2ui-surface-c1", role: "activity", activityType: "a2ui-surface", content: { a2ui_operations: operations } },
  ] as Message[];
  expect(entriesOfMessages(messages, context)).toEqual([
    { kind: "tool", id: "c1", callId: "c1", runId: "run_1", name: "project_cli", args: { module: "calendar" }, state: "done", result: '{"ok":true}', error: null, card: operations },
  ]);
});

test("messages of other runs are ignored", () => {
  const messages = [{ id: "run_2.1", role: "assistant", content: "other" }, { id: "run_1.1", role: "assistant", content: "own" }] as Message[];
  expect(entriesOfMessages(messages, context).map((entry) => entry.id)).toEqual(["run_1.1"]);
});

test("reasoning is shown before its text, whichever came first", () => {
  const behind = [{ id: "run_1.1", role: "assistant", content: "text" }, { id: "run_1.9.0", role: "reasoning", content: "why" }] as Message[];
  expect(entriesOfMessages(behind, context).map((entry) => entry.kind)).toEqual(["reasoning", "answer"]);
  const before = [
    { id: "run_1.1", role: "assistant", content: "first" },
    { id: "run_1.9.0", role: "reasoning", content: "why" },
    { id: "run_1.9", role: "assistant", content: "second" },
  ] as Message[];
  expect(entriesOfMessages(before, context).map((entry) => entry.id)).toEqual(["run_1.1", "run_1.9.0", "run_1.9"]);
});

test("only the newest text of an open stream grows, and calls without a result are running", () => {
  const messages = [call("run_1.1", "c1"), { id: "run_1.2", role: "assistant", content: "so far" }] as Message[];
  const live = entriesOfMessages(messages, { ...context, live: true });
  expect(live.map((entry) => ("state" in entry ? entry.state : "streaming" in entry ? entry.streaming : null))).toEqual(["running", true]);
  const over = entriesOfMessages(messages, context);
  expect(over.map((entry) => ("state" in entry ? entry.state : "streaming" in entry ? entry.streaming : null))).toEqual(["stopped", false]);
});
