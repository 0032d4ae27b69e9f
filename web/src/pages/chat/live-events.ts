// AG-UI events that are not messages: files, questions and failures.
import { visibleText, visibleValue } from "@/api/visible";
import type { Entry, FileRef } from "./entry";
import { fileOf, isMedia, isObject, textOr } from "./entry";
import { entryOfRequest } from "./interaction";

/** The client's error for a stream that this page aborted. */
const CUT = "abort";

export interface Failure {
  code: string;
  message: string;
  /** The stream broke, not the run. */
  comeBack: boolean;
}

export function errorOf(event: Record<string, unknown>): Failure {
  const message = visibleText(textOr(event["message"], ""));
  const code = textOr(event["code"], "runtime_error");
  // Answered elsewhere, or the stream broke: the run continues.
  const comeBack = code === "interrupt_settled" || code === CUT || message.includes("come back with the same `runId`");
  return { code, message, comeBack };
}

export function entryOfCustom(name: string, value: unknown, id: string, runId: string | null): Entry | null {
  if (name === "run.restarted") return { kind: "notice", id, runId, notice: "restarted" };
  if (name === "interaction.requested" && isObject(value)) return entryOfRequest(value["request"], textOr(value["message_id"], id), runId);
  const files = filesOf(name, visibleValue(value));
  return files.length > 0 ? { kind: "files", id, runId, files } : null;
}

function filesOf(name: string, value: unknown): FileRef[] {
  if (!isObject(value)) return [];
  if (name === "artifact.created") return [fileOf(value)];
  if (name === "message.media" && Array.isArray(value["media"])) return value["media"].filter(isMedia).map(fileOf);
  return [];
}
