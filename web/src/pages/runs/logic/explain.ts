// Explains why a run, a call or a tool failed, and what to do.

import type { Key } from "@/i18n";
import type { AuditRecord, Grant, JsonObject } from "@/api/types";
import { text } from "./read";
import { say, type Say } from "./say";

export interface Explanation {
  what: Say;
  todo: Say;
  /** False if the code is the runner's own: only its message explains it. */
  known: boolean;
}

/** Codes of failed runs and refused calls that have texts. */
export const CODES = [
  "cancelled", "deadline_exceeded", "host.interrupted", "runner.no_terminal", "runner.crashed",
  "runner.unavailable", "runner.protocol_error", "runner.overflow", "runner.error", "budget_exceeded",
  "loop", "agent.no_model", "config.invalid", "model.timeout", "model.empty_answer", "model.refused",
  "limit", "unauthorized", "not_found", "invalid_argument", "payload_too_large", "rate_limited",
  "runtime_error",
] as const;
export type Code = (typeof CODES)[number];

/** Error codes of tools, in capitals. */
export const TOOL_CODES = [
  "INVALID_ARGUMENT", "METHOD_NOT_ALLOWED", "NOT_FOUND", "CONFLICT", "FORBIDDEN", "DENIED", "NO_ACTOR",
  "UNAUTHORIZED", "CANCELLED", "TOOL_ERROR", "CRASHED", "PROTOCOL_ERROR", "INVALID_OUTPUT",
  "OUTPUT_TOO_LARGE", "TIMEOUT", "UNAVAILABLE", "INTERRUPTED", "RATE_LIMITED",
] as const;
export type ToolCode = (typeof TOOL_CODES)[number];

/** Codes that share the text of another one. */
const SAME: Record<string, ToolCode> = {
  INVALID_ACTION_INPUT: "INVALID_ARGUMENT",
  NOT_READABLE: "NOT_FOUND",
  METHOD_CRASHED: "CRASHED",
  METHOD_FAILED: "TOOL_ERROR",
  TOOL_FAILED: "TOOL_ERROR",
  RUNTIME_ERROR: "TOOL_ERROR",
  PAYLOAD_TOO_LARGE: "OUTPUT_TOO_LARGE",
  DEADLINE_EXCEEDED: "TIMEOUT",
};

function isCode(code: string): code is Code {
  return (CODES as readonly string[]).includes(code);
}

function isToolCode(code: string): code is ToolCode {
  return (TOOL_CODES as readonly string[]).includes(code);
}

/** Why a run failed. */
export function explainFailure(code: string, agent: string): Explanation {
  const family = code.startsWith("loop.") ? "loop" : code.startsWith("limit.") ? "limit" : code;
  if (!isCode(family)) {
    return { what: say("runs.code.own.what", { code }), todo: say("runs.code.own.todo"), known: false };
  }
  return {
    what: say(`runs.code.${family}.what`, { agent, code }),
    todo: say(`runs.code.${family}.todo`, { agent, code }),
    known: true,
  };
}

/** Why a tool call failed: codes in capitals are the tool's, in lower case the host's. */
export function explainTool(error: JsonObject, tool: string, agent: string): Explanation {
  const code = text(error, "code") ?? "?";
  const reason = text(error["details"], "reason");
  if (code === "unauthorized" && (reason === "denied" || reason === "expired")) return ofTool("DENIED", tool);
  if (isCode(code)) return explainFailure(code, agent);
  const family = SAME[code] ?? code;
  if (isToolCode(family)) return ofTool(family, tool);
  return { what: say("runs.tool.own.what", { tool, code }), todo: say("runs.tool.own.todo"), known: false };
}

function ofTool(code: ToolCode, tool: string): Explanation {
  return { what: say(`runs.tool.${code}.what`, { tool }), todo: say(`runs.tool.${code}.todo`, { tool }), known: true };
}

/** Prefixes of methods, and the key of the grant that covers each. */
const AREAS = {
  models: "models", tools: "tools", knowledge: "knowledge", history: "history", events: "event_log",
  artifacts: "artifacts", state: "state", storage: "storage", platform: "actions", steering: "queue", harness: "harness",
} as const;

/** Methods that have texts. */
export const METHODS = [
  "models.invoke", "models.stream", "models.rerank", "models.embed", "models.count_tokens",
  "tools.get_detail", "tools.search", "tools.call", "knowledge.list", "knowledge.retrieve",
  "history.page", "history.search", "events.get", "events.page", "artifacts.metadata",
  "artifacts.read_range", "artifacts.open_stream", "artifacts.create", "artifacts.begin", "artifacts.append", "artifacts.commit",
  "state.get", "state.set",
  "state.delete", "state.list", "storage.get", "storage.set", "storage.delete", "storage.list",
  "platform.request_action", "steering.pull", "harness.permission",
] as const;
export type Method = (typeof METHODS)[number];

/** What a method does, as in “wanted to …”. */
export function actOf(method: string): Say {
  const known = (METHODS as readonly string[]).includes(method);
  return known ? say(`runs.act.${method as Method}`) : say("runs.act.unknown", { method });
}

/** The object of a call: a model, a key, a scope; or empty. */
export function aboutOf(record: AuditRecord): string {
  const scope = ["resource", "facts", "owner", "surface", "run", null, undefined].includes(record.scope) ? undefined : record.scope;
  return [scope, record.resource].filter((part) => part !== undefined && part !== null && part !== "").join(" · ");
}

/** Why a call of a runner was refused, and what would allow it. */
export function explainRefusal(record: AuditRecord, grant: Grant | null): Explanation {
  if (record.code !== "unauthorized") return explainCall(record.code, record.agent ?? "");
  const agent = record.agent ?? grant?.agent ?? "NAME";
  const area = record.method.split(".")[0] ?? "";
  const key = AREAS[area as keyof typeof AREAS];
  if (grant === null || key === undefined) return explainCall(record.code, agent);
  const reason = missing(record, grant, area);
  const todo: Key = reason === "asked" ? "runs.refused.asked.todo" : `runs.refused.granted.todo`;
  const what: Key = reason === "asked" ? "runs.refused.asked.what" : `runs.refused.granted.what`;
  return { what: say(what, { agent, key }), todo: say(todo, { agent, key }), known: true };
}

function explainCall(code: string, agent: string): Explanation {
  if (!isCode(code)) return explainFailure(code, agent);
  return { what: say(`runs.code.${code}.what`, { agent, code }), todo: say(`runs.code.${code}.todo`, { agent, code }), known: true };
}

/** Whether the manifest does not request it, or the grant does not allow it. */
function missing(record: AuditRecord, grant: Grant, area: string): "asked" | "granted" {
  const operation = record.method.split(".")[1] ?? "";
  const facts = { history: grant.history, events: grant.events, artifacts: grant.artifacts }[area];
  if (facts !== undefined) return facts.reach === "none" ? "granted" : "asked";
  const named = { models: grant.models, tools: grant.tools, knowledge: grant.knowledge }[area];
  if (named !== undefined) {
    const needed = area === "tools" && operation !== "call" ? "detail" : operation === "count_tokens" ? "invoke" : operation;
    return named.operations.includes(needed) ? "granted" : "asked";
  }
  return "granted";
}
