// An event as one line.
import type { EventView, Json, JsonObject } from "../../api/types";
import type { T } from "../../i18n";

export const EVENT_KINDS = ["messages", "tools", "deliveries", "approvals", "actions", "other"] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

const PREFIXES: readonly [string, EventKind][] = [
  ["message.", "messages"],
  ["tool.", "tools"],
  ["delivery.", "deliveries"],
  ["approval.", "approvals"],
  ["action.", "actions"],
];

export function eventKind(type: string): EventKind {
  return PREFIXES.find(([prefix]) => type.startsWith(prefix))?.[1] ?? "other";
}

/** E.g. “Ann wrote: hello”; the event type if there is no sentence for it. */
export function eventSentence(t: T, view: EventView): string {
  const body = objectOf(view.event);
  const type = view.event_type;
  if (eventKind(type) === "messages") return message(t, view) ?? t("facts.said_other", { type });
  if (view.source !== "host") return t("facts.said_other", { type });
  const action = subject(body);
  const who = string(body["answered_by"]) ?? t("facts.any_user");
  const surface = string(body["surface"]) ?? "?";
  const tool = string(body["tool_name"]) ?? "?";
  switch (type) {
    case "tool.call.started":
      return t("facts.said_tool_started", { tool });
    case "tool.call.completed":
      return t(toolFailed(body) ? "facts.said_tool_failed" : "facts.said_tool_worked", { tool });
    case "artifact.created":
      return t("facts.said_artifact", { name: string(body["name"]) ?? string(body["artifact_id"]) ?? "?" });
    case "run.failed":
      return t("facts.said_run_failed", { agent: string(body["agent"]) ?? "?", message: string(objectOf(body["error"])["message"]) ?? "?" });
    case "delivery.done":
      return t("facts.said_delivery_done", { surface });
    case "delivery.failed":
      return t("facts.said_delivery_failed", { surface, error: string(body["error"]) ?? "?" });
    case "delivery.unknown":
      return t("facts.said_delivery_unknown", { surface });
    case "delivery.retried":
      return t("facts.said_delivery_retried", { who: string(body["by"]) ?? t("facts.any_user"), surface });
    case "delivery.discarded":
      return t("facts.said_delivery_discarded", { who: string(body["by"]) ?? t("facts.any_user"), surface });
    case "approval.requested":
      return t("facts.said_approval_requested", { agent: string(body["agent"]) ?? "?", action });
    case "approval.allowed":
      return t("facts.said_approval_allowed", { who, action });
    case "approval.denied":
      return t("facts.said_approval_denied", { who, action });
    case "approval.expired":
      return t("facts.said_approval_expired", { action });
    case "approval.cancelled":
      return t("facts.said_approval_cancelled", { action });
    case "action.requested":
      return t("facts.said_action", { action });
    case "steering.injected":
      return t("facts.said_steering_injected");
    case "steering.requeued":
      return t("facts.said_steering_requeued");
    default:
      return t("facts.said_other", { type });
  }
}

/** Display name of an event's actor. */
export function eventActor(view: EventView): string | null {
  const actor = objectOf(objectOf(view.event)["actor"]);
  return string(actor["actor_name"]) ?? string(actor["actor_id"]);
}

/** Ids of the files of an event. */
export function eventFiles(view: EventView): { artifact_id: string; name: string | null }[] {
  const input = objectOf(objectOf(view.event)["input"]);
  const parts = [...list(input["attachments"]), ...list(input["contents"])].map(objectOf);
  const found = new Map<string, string | null>();
  for (const part of parts) {
    const id = string(part["artifact_id"]);
    if (id && !found.has(id)) found.set(id, string(part["name"]));
  }
  return Array.from(found, ([artifact_id, name]) => ({ artifact_id, name }));
}

/** The replayed event, if this is a replay. */
export function replayOf(view: EventView): string | null {
  return string(objectOf(objectOf(view.event)["metadata"])["replay_of"]);
}

/** The text of a message, or null. */
export function eventText(view: EventView): string | null {
  const input = objectOf(objectOf(view.event)["input"]);
  const contents = list(input["contents"]).map((part) => string(objectOf(part)["text"]));
  return string(input["text"]) ?? (contents.filter(Boolean).join("\n") || null);
}

function message(t: T, view: EventView): string | null {
  const who = eventActor(view) ?? t("facts.any_user");
  const text = eventText(view);
  if (text) return t("facts.said_message", { who, text: text.replace(/\s+/g, " ").slice(0, 300) });
  const files = eventFiles(view).length;
  return files > 0 ? t("facts.said_message_files", { who, count: files }) : null;
}

// Calls through the host have a status; calls reported by a runner have at most an error.
function toolFailed(body: JsonObject): boolean {
  const status = string(body["status"]);
  return status === null ? (body["error"] ?? null) !== null : status !== "success";
}

// The subject of an approval: an action, or the tool of a call.
function subject(body: JsonObject): string {
  const tool = string(objectOf(body["target"])["tool_name"]);
  return tool ?? string(body["action"]) ?? "?";
}

function objectOf(value: Json | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

function string(value: Json | undefined): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
