// Sentences of events.
import { expect, test } from "vitest";
import type { EventView, Json } from "../../api/types";
import { translate, type T } from "../../i18n";
import { eventFiles, eventKind, eventSentence, eventText, replayOf } from "./event-sentence";

const english: T = (key, values) => translate("en", key, values);

function view(event_type: string, event: Json, source = "host"): EventView {
  return { event_id: "e1", event_type, source, seq: 1, created_at: "2026-11-15T15:00:00.000Z", event };
}

test.each([
  [view("message.received", { actor: { actor_id: "u1", actor_name: "Ann" }, input: { text: "hi\n there" } }, "api"), "Ann wrote: hi there"],
  [view("message.received", { input: { contents: [{ type: "text", text: "look" }] } }, "api"), "A user wrote: look"],
  [view("message.received", { actor: { actor_id: "u1" }, input: { attachments: [{ artifact_id: "a" }, { artifact_id: "a" }] } }, "api"), "u1 sent 1 file"],
  [view("tool.call.completed", { tool_name: "project_cli", status: "success" }), "project_cli succeeded"],
  [view("tool.call.completed", { tool_name: "project_cli", status: "failure" }), "project_cli failed"],
  [view("tool.call.completed", { tool_name: "lookup", error: null }), "lookup succeeded"],
  [view("tool.call.completed", { tool_name: "lookup", error: "no answer" }), "lookup failed"],
  [view("run.failed", { agent: "helper", error: { code: "x", message: "no luck" } }), "The run of helper failed: no luck"],
  [view("approval.allowed", { answered_by: "admin", action: "tool.call", target: { tool_name: "files.delete" } }), "admin allowed: files.delete"],
  [view("approval.expired", { action: "message.send", target: {} }), "Approval expired: message.send"],
  [view("delivery.failed", { surface: "helpdesk", error: "404" }), "Not delivered to helpdesk: 404"],
  [view("issue.opened", { data: {} }, "api"), "issue.opened"],
  [view("message.received", null, "api"), "message.received"],
])("%o", (event, sentence) => {
  expect(eventSentence(english, event)).toBe(sentence);
});

test("an external event with a type of the host is not trusted", () => {
  expect(eventSentence(english, view("approval.allowed", { answered_by: "admin" }, "api"))).toBe("approval.allowed");
});

test("a replay names its original", () => {
  expect(replayOf(view("message.received", { metadata: { replay_of: "evt_1" } }))).toBe("evt_1");
  expect(replayOf(view("message.received", { metadata: {} }))).toBeNull();
});

test("kinds follow the prefix of the type", () => {
  expect(["message.received", "tool.call.completed", "steering.injected"].map(eventKind)).toEqual(["messages", "tools", "other"]);
});

test("files are listed once, with their name", () => {
  const files = eventFiles(
    view("message.received", {
      input: { attachments: [{ artifact_id: "a", name: "x.png" }], contents: [{ type: "image", artifact_id: "a" }, { type: "file", artifact_id: "b" }] },
    }),
  );
  expect(files).toEqual([
    { artifact_id: "a", name: "x.png" },
    { artifact_id: "b", name: null },
  ]);
  expect(eventText(view("message.received", { input: {} }))).toBeNull();
});
