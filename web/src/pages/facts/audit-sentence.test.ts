// Sentences of audit records.
import { expect, test } from "vitest";
import type { AuditRecord } from "../../api/types";
import { translate, type T } from "../../i18n";
import { auditReason, auditSentence } from "./audit-sentence";

const english: T = (key, values) => translate("en", key, values);
const chinese: T = (key, values) => translate("zh", key, values);

function record(part: Partial<AuditRecord>): AuditRecord {
  return {
    run_id: "run_1",
    attempt: 1,
    agent: "helper",
    runner: "helper-runner",
    plugin: "acme/helper",
    method: "history.page",
    resource: null,
    scope: "conversation",
    code: "ok",
    bytes_in: 10,
    bytes_out: 20,
    duration_us: 30,
    at: "2026-11-15T15:24:50.759Z",
    ...part,
  };
}

test.each([
  [{}, "Agent helper read the history of its own conversation."],
  [{ scope: "workspace" }, "Agent helper read the history of the whole workspace."],
  [
    { resource: "c2", code: "not_found" },
    "Agent helper tried to read the history of another conversation (“c2”), but it was not found.",
  ],
  [
    { resource: "c2", code: "unauthorized" },
    "Agent helper was not allowed to read the history of another conversation (“c2”).",
  ],
  [{ scope: "facts", code: "unauthorized" }, "Agent helper was not allowed to read the history of conversations."],
  [{ method: "models.stream", resource: "default", scope: null }, "Agent helper called the model “default”."],
  [
    { method: "models.stream", resource: "gpt", scope: null, code: "not_found" },
    "Agent helper tried to call the model “gpt”, but it was not found.",
  ],
  [
    { method: "tools.call", resource: "project_cli", scope: "calendar.read" },
    "Agent helper called calendar.read of the tool “project_cli”.",
  ],
  [
    { method: "tools.call", resource: "files.write", scope: "destructive", code: "unauthorized" },
    "Agent helper was not allowed to call the tool “files.write”.",
  ],
  [
    { method: "tools.call", resource: "files.read", scope: "read", authority: "user" },
    "Agent helper called the tool “files.read”. A user requested it with a command.",
  ],
  [{ method: "state.set", resource: "mood", scope: "actor" }, "Agent helper wrote the state “mood” of its user."],
  [{ method: "state.list", resource: null, scope: "owner", code: "unauthorized" }, "Agent helper was not allowed to list the state of an unknown owner."],
  [{ method: "storage.get", resource: "k", scope: "binding" }, "Agent helper read “k” in its agent's storage."],
  [{ method: "storage.list", resource: null, scope: "workspace" }, "Agent helper listed the workspace's storage."],
  [{ agent: null, method: "do.harm", code: "invalid_argument" }, "Runner helper-runner tried to call “do.harm”, which does not exist, but the request was invalid."],
  [{ method: "steering.pull", code: "teapot" }, "Agent helper tried to receive messages that arrived during the run: teapot."],
] as [Partial<AuditRecord>, string][])("%o in English", (part, sentence) => {
  expect(auditSentence(english, record(part))).toBe(sentence);
});

test.each([
  [{}, "智能体 helper 读取了当前会话的历史。"],
  [{ resource: "c2", code: "unauthorized" }, "智能体 helper 无权读取其他会话（“c2”）的历史。"],
  [{ method: "tools.call", resource: "project_cli", scope: "calendar.read" }, "智能体 helper 调用了工具“project_cli”的 calendar.read。"],
  [{ agent: null, method: "models.embed", resource: null, code: "rate_limited" }, "运行器 helper-runner 尝试用某个模型生成向量，但超过了速率限制。"],
] as [Partial<AuditRecord>, string][])("%o in Chinese", (part, sentence) => {
  expect(auditSentence(chinese, record(part))).toBe(sentence);
});

test("names that look like placeholders or markup stay as they are", () => {
  const odd = record({ method: "tools.call", resource: "{who}<b>", scope: "read" });
  expect(auditSentence(english, odd)).toBe("Agent helper called the tool “{who}<b>”.");
});

test("every code has a reason, unknown ones too", () => {
  expect(auditReason(english, "rate_limited")).toContain("calls per second");
  expect(auditReason(english, "teapot")).toBe("The host returned this code.");
});
