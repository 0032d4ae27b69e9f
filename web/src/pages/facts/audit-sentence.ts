// An audit record as a plain sentence.
import type { T } from "../../i18n";
import type { AuditRecord } from "../../api/types";

type What = "model" | "tool" | "knowledge" | "event" | "artifact" | "action" | "state" | "storage" | "place" | "none";

const METHODS = {
  "models.invoke": "model",
  "models.stream": "model",
  "models.rerank": "model",
  "models.embed": "model",
  "models.count_tokens": "model",
  "tools.get_detail": "tool",
  "tools.search": "none",
  "tools.call": "tool",
  "knowledge.list": "none",
  "knowledge.retrieve": "knowledge",
  "history.page": "place",
  "history.search": "place",
  "events.get": "event",
  "events.page": "place",
  "artifacts.metadata": "artifact",
  "artifacts.read_range": "artifact",
  "artifacts.open_stream": "artifact",
  "artifacts.create": "artifact",
  "artifacts.begin": "artifact",
  "artifacts.append": "artifact",
  "artifacts.commit": "artifact",
  "state.get": "state",
  "state.set": "state",
  "state.delete": "state",
  "state.list": "state",
  "storage.get": "storage",
  "storage.set": "storage",
  "storage.delete": "storage",
  "storage.list": "storage",
  "platform.request_action": "action",
  "steering.pull": "none",
  "harness.permission": "none",
} as const satisfies Record<string, What>;

type Method = keyof typeof METHODS;

/** Every method a runner can call, in the order of the contract. */
export const METHOD_NAMES = Object.keys(METHODS) as Method[];

const CODES = [
  "ok",
  "unauthorized",
  "not_found",
  "invalid_argument",
  "payload_too_large",
  "rate_limited",
  "deadline_exceeded",
  "runtime_error",
] as const;
type Code = (typeof CODES)[number];

/** Every outcome code of a call. */
export const CODE_NAMES: readonly Code[] = CODES;

/** E.g. “Agent helper was not allowed to read the history of another conversation (“c2”).” */
export function auditSentence(t: T, record: AuditRecord): string {
  const who = record.agent
    ? t("audit.by_agent", { name: record.agent })
    : t("audit.by_runner", { name: record.runner });
  const sentence =
    record.code === "ok"
      ? t("audit.said_ok", { who, did: phrase(t, record, "did") })
      : refused(t, who, record);
  return record.authority === "user" ? t("audit.for_user", { sentence }) : sentence;
}

/** The general reason for an outcome code. */
export function auditReason(t: T, code: string): string {
  return isCode(code) ? t(`audit.why_${code}`) : t("audit.why_other");
}

function refused(t: T, who: string, record: AuditRecord): string {
  const to = phrase(t, record, "to");
  const { code } = record;
  return isCode(code) ? t(`audit.said_${code}`, { who, to }) : t("audit.said_other", { who, to, code });
}

function phrase(t: T, record: AuditRecord, tense: "did" | "to"): string {
  const { method } = record;
  if (!isMethod(method)) return t(`audit.${tense}_unknown`, { method });
  const key = method.replace(".", "_") as MethodKey<Method>;
  return t(`audit.${tense}_${key}`, { what: object(t, record, METHODS[method]) });
}

type MethodKey<M extends string> = M extends `${infer A}.${infer B}` ? `${A}_${B}` : never;

function object(t: T, record: AuditRecord, what: What): string {
  const name = record.resource;
  switch (what) {
    case "none":
      return "";
    case "place":
      return place(t, record);
    case "state":
      return owned(t, name, "state", stateOwner(t, record.scope));
    case "storage":
      return owned(t, name, "storage", storageOwner(t, record.scope));
    case "tool":
      return tool(t, record);
    default:
      return name ? t(`audit.${what}_named`, { name }) : t(`audit.${what}_any`);
  }
}

// For the project CLI the scope is `module.method`; for other tools it is the risk.
function tool(t: T, record: AuditRecord): string {
  const { resource: name, scope } = record;
  if (!name) return t("audit.tool_any");
  return scope?.includes(".") ? t("audit.tool_method", { name, method: scope }) : t("audit.tool_named", { name });
}

function place(t: T, record: AuditRecord): string {
  const { resource: name, scope, code } = record;
  if (name) return t(code === "ok" ? "audit.place_named" : "audit.place_other", { name });
  if (scope === "conversation") return t("audit.place_own");
  if (scope === "workspace") return t("audit.place_workspace");
  return t("audit.place_any");
}

function owned(t: T, name: string | null | undefined, what: "state" | "storage", owner: string): string {
  return name ? t(`audit.${what}_named`, { name, owner }) : t(`audit.${what}_any`, { owner });
}

function stateOwner(t: T, scope: string | null | undefined): string {
  switch (scope) {
    case "conversation":
    case "actor":
    case "subject":
    case "runner":
    case "binding":
      return t(`audit.owner_${scope}`);
    default:
      return t("audit.owner_any_state");
  }
}

function storageOwner(t: T, area: string | null | undefined): string {
  switch (area) {
    case "plugin":
    case "workspace":
      return t(`audit.owner_${area}`);
    case "binding":
      return t("audit.owner_binding_storage");
    default:
      return t("audit.owner_any_storage");
  }
}

function isMethod(method: string): method is Method {
  return Object.hasOwn(METHODS, method);
}

function isCode(code: string): code is Code {
  return (CODES as readonly string[]).includes(code);
}
