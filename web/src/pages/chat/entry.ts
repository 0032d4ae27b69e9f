// The entries of a conversation, one per row; history and live runs produce the same entries.
import type { ApprovalStatus, ApprovalSubject, InteractionRequest, Json, JsonObject } from "@/api/types";

/** A file of a message: an artifact, or a remote file that is only named. */
export interface FileRef {
  artifactId: string | null;
  name: string | null;
  mime: string | null;
  size: number | null;
  /** URL of a remote file. */
  url: string | null;
}

export type Delivery = "sending" | "queued" | "steered" | "failed" | null;

export interface UserEntry {
  kind: "user";
  id: string;
  runId: string | null;
  eventId: string | null;
  text: string;
  files: FileRef[];
  at: string | null;
  from: string | null;
  delivery: Delivery;
}

export interface AnswerEntry {
  kind: "answer";
  id: string;
  runId: string | null;
  text: string;
  at: string | null;
  streaming: boolean;
}

export interface ReasoningEntry {
  kind: "reasoning";
  id: string;
  runId: string | null;
  text: string;
}

export interface ToolEntry {
  kind: "tool";
  id: string;
  callId: string;
  runId: string | null;
  name: string;
  args: Json;
  state: "running" | "done" | "failed" | "stopped";
  /** The JSON text sent to the agent. */
  result: string | null;
  error: JsonObject | null;
  /** The card as A2UI operations. */
  card: Json[] | null;
}

export interface PlanStep {
  text: string;
  state: "pending" | "in_progress" | "completed";
}

/** The steps of an external harness, as last reported. */
export interface PlanEntry {
  kind: "plan";
  id: string;
  runId: string | null;
  steps: PlanStep[];
}

export interface FilesEntry {
  kind: "files";
  id: string;
  runId: string | null;
  files: FileRef[];
}

export interface ApprovalEntry {
  kind: "approval";
  id: string;
  /** The AG-UI interrupt id; null if it cannot be answered here. */
  interruptId: string | null;
  /** Its tool call. */
  callId: string | null;
  runId: string | null;
  agent: string;
  action: string;
  target: JsonObject;
  payload: JsonObject;
  subject: ApprovalSubject | null;
  expiresAt: string | null;
  decision: Exclude<ApprovalStatus, "pending"> | null;
  /** Answered, but the run waits for other approvals. */
  held: boolean;
}

/** A question with fields and buttons; it replaces the text of its message. */
export interface InteractionEntry {
  kind: "interaction";
  id: string;
  runId: string;
  request: InteractionRequest;
}

export interface ErrorEntry {
  kind: "error";
  id: string;
  runId: string | null;
  agent: string;
  code: string;
  message: string;
}

export interface NoticeEntry {
  kind: "notice";
  id: string;
  runId: string | null;
  notice: "cancelled" | "restarted";
}

/** A notice that is neither the user's nor the agent's. */
export interface OtherEntry {
  kind: "other";
  id: string;
  runId: string | null;
  text: string;
}

export type Entry =
  | UserEntry
  | AnswerEntry
  | ReasoningEntry
  | ToolEntry
  | PlanEntry
  | FilesEntry
  | ApprovalEntry
  | InteractionEntry
  | ErrorEntry
  | NoticeEntry
  | OtherEntry;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function textOr<Otherwise>(value: unknown, otherwise: Otherwise): string | Otherwise {
  return typeof value === "string" ? value : otherwise;
}

/** A non-text part of a message, in events and results. */
export function fileOf(part: JsonObject): FileRef {
  return {
    artifactId: textOr(part["artifact_id"], null),
    name: textOr(part["name"], null),
    mime: textOr(part["mime_type"], null),
    size: typeof part["size_bytes"] === "number" ? part["size_bytes"] : null,
    url: textOr(part["artifact_id"], null) === null ? textOr(part["url"], null) : null,
  };
}

const MEDIA = new Set(["image", "audio", "video", "file"]);

export function isMedia(part: unknown): part is JsonObject {
  return isObject(part) && typeof part["type"] === "string" && MEDIA.has(part["type"]);
}
