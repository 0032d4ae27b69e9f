// An approval as a sentence.
import type { Approval, JsonObject } from "../../api/types";
import type { T } from "../../i18n";

export const RISKS = ["read", "write", "destructive", "external"] as const;
export type Risk = (typeof RISKS)[number];

/** E.g. “Agent assistant wants to run calendar.delete”; past tense once answered. */
export function approvalSentence(t: T, approval: Approval): string {
  const { action, agent } = approval;
  const verb = approval.status === "pending" ? "wants" : "wanted";
  const { payload, target } = parts(approval);
  if (action === "tool.call") {
    const module = text(payload["module"]);
    const method = text(payload["method"]);
    if (isProjectCli(approval) && module && method) return t(`approvals.${verb}_tool_method`, { agent, module, method });
    return t(`approvals.${verb}_tool`, { agent, what: text(target["tool_name"]) ?? "?" });
  }
  if (action === "tool.input") return t(`approvals.${approval.status === "pending" ? "asks" : "asked_for"}`, { server: text(target["server"]) ?? "?" });
  if (isHarness(approval)) return t(`approvals.${verb}_harness`, { agent, what: text(target["title"]) ?? action });
  const where = destination(approval) ?? t("approvals.where_unknown");
  switch (action) {
    case "message.send":
      return t(`approvals.${verb}_message_send`, { agent, where });
    case "message.edit":
      return t(`approvals.${verb}_message_edit`, { agent, where });
    case "message.delete":
      return t(`approvals.${verb}_message_delete`, { agent, where });
    case "message.react":
      return t(`approvals.${verb}_message_react`, { agent, where });
    default:
      return t(`approvals.${verb}_other`, { agent, action });
  }
}

/** Whether an external harness asks to use one of its own tools. */
export function isHarness(approval: Approval): boolean {
  return approval.action.startsWith("harness.");
}

/** The risk; actions on platforms are external. */
export function approvalRisk(approval: Approval): Risk {
  const risk = text(approval.target?.["risk"]);
  return RISKS.find((known) => known === risk) ?? "external";
}

/** The input, without what the sentence already contains. */
export function approvalInput(approval: Approval): JsonObject {
  const { payload } = parts(approval);
  const input = payload["input"];
  const isObject = typeof input === "object" && input !== null && !Array.isArray(input);
  return isProjectCli(approval) && isObject ? input : payload;
}

/** Display name of the user. */
export function approvalActor(approval: Approval): string | null {
  return approval.actor?.actor_name ?? approval.actor?.actor_id ?? null;
}

/** Seconds until it expires, never below zero. */
export function secondsLeft(expiresAt: string, now: number): number {
  return Math.max(0, Math.ceil((Date.parse(expiresAt) - now) / 1000));
}

/** A time left as `29:05` or `1:00:00`. */
export function countdown(seconds: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  const rest = two(seconds % 60);
  return hours > 0 ? `${hours}:${two(minutes)}:${rest}` : `${minutes}:${rest}`;
}

function parts(approval: Approval): { target: JsonObject; payload: JsonObject } {
  return { target: approval.target ?? {}, payload: approval.payload ?? {} };
}

function isProjectCli(approval: Approval): boolean {
  return approval.target?.["tool_name"] === "project_cli";
}

function destination(approval: Approval): string | null {
  const { target } = parts(approval);
  return [text(target["surface"]), text(target["conversation_id"])].filter(Boolean).join(" / ") || null;
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
