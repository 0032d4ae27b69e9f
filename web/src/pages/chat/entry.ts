// What a conversation shows, one entry per row; kept history and live runs become the same entries.
import type { ApprovalStatus, ApprovalSubject, Json, JsonObject } from "@/api/types";

/** A file beside a message: kept by the host, or somewhere else and then only named. */
export interface FileRef {
  artifactId: string | null;
  name: string | null;
  mime: string | null;
  size: number | null;
  /** Where it is when the host does not keep it. */
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
  /** The JSON text that the agent got. */
  result: string | null;
  error: JsonObject | null;
  /** The card, as operations of A2UI. */
  card: Json[] | null;
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
  /** How AG-UI calls the question; null where it is not to be answered here. */
  interruptId: string | null;
  /** The call that it is about. */
  callId: string | null;
  runId: string | null;
  agent: string;
  action: string;
  target: JsonObject;
  payload: JsonObject;
  subject: ApprovalSubject | null;
  expiresAt: string | null;
  decision: Exclude<ApprovalStatus, "pending"> | null;
  /** Answered, but the run asks something else too. */
  held: boolean;
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

/** What is neither said by a person nor by an agent. */
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
  | FilesEntry
  | ApprovalEntry
  | ErrorEntry
  | NoticeEntry
  | OtherEntry;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function textOr<Otherwise>(value: unknown, otherwise: Otherwise): string | Otherwise {
  return typeof value === "string" ? value : otherwise;
}

/** A part of a message that is no text, as events and results have them. */
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
