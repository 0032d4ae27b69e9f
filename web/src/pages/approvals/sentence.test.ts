// Sentences of approvals.
import { expect, test } from "vitest";
import type { Approval } from "../../api/types";
import { translate, type T } from "../../i18n";
import { approvalActor, approvalInput, approvalRisk, approvalSentence, countdown, secondsLeft } from "./sentence";

const english: T = (key, values) => translate("en", key, values);

const deletion: Approval = {
  approval_id: "apr_1",
  nonce: "n",
  status: "pending",
  action: "tool.call",
  target: { risk: "destructive", source: "project_cli", tool_call_id: "call_1", tool_name: "project_cli" },
  payload: { module: "calendar", method: "delete", input: { event_id: "rec_1" } },
  agent: "assistant",
  runner_id: "plugin:greenroom/local-agent/default",
  run_id: "run_1",
  conversation_id: "demo",
  actor: { actor_type: "user", actor_id: "u1", actor_name: "Ann", metadata: {} },
  created_at: "2026-11-15T15:25:23.722Z",
  expires_at: "2026-11-15T15:55:23.722Z",
  answered_at: null,
  answered_by: null,
  outcome: null,
};

const message: Approval = {
  ...deletion,
  action: "message.send",
  target: { surface: "helpdesk", conversation_id: "c1" },
  payload: { text: "hi" },
  actor: { actor_type: "user", actor_id: "u1", actor_name: null, metadata: {} },
};

test("a method of the project CLI is named as such, and its input alone is shown", () => {
  expect(approvalSentence(english, deletion)).toBe("Agent assistant wants to run calendar.delete");
  expect(approvalInput(deletion)).toEqual({ event_id: "rec_1" });
  expect(approvalRisk(deletion)).toBe("destructive");
});

test("another tool with the same input fields is not the project CLI", () => {
  const other = { ...deletion, target: { ...deletion.target, tool_name: "files.delete" } };
  expect(approvalSentence(english, other)).toBe("Agent assistant wants to call files.delete");
  expect(approvalInput(other)).toEqual(deletion.payload);
});

test("a message names its surface and conversation and is external", () => {
  expect(approvalSentence(english, message)).toBe("Agent assistant wants to send a message to helpdesk / c1");
  expect(approvalRisk(message)).toBe("external");
});

test("answered approvals are in the past tense", () => {
  expect(approvalSentence(english, { ...deletion, status: "denied" })).toBe("Agent assistant wanted to run calendar.delete");
});

test("an unknown action is shown by its name", () => {
  expect(approvalSentence(english, { ...message, action: "door.open" })).toBe(
    "Agent assistant wants to perform “door.open”",
  );
});

test("the name of a user is preferred to the id", () => {
  expect([approvalActor(deletion), approvalActor(message), approvalActor({ ...message, actor: null })]).toEqual([
    "Ann",
    "u1",
    null,
  ]);
});

test("the countdown stops at zero", () => {
  const end = "2026-11-15T15:55:00.000Z";
  expect(secondsLeft(end, Date.parse("2026-11-15T15:25:00.500Z"))).toBe(1800);
  expect(secondsLeft(end, Date.parse("2026-11-15T16:25:00.000Z"))).toBe(0);
  expect([countdown(1745), countdown(3600), countdown(5), countdown(0)]).toEqual(["29:05", "1:00:00", "0:05", "0:00"]);
});
