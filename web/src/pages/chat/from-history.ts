// Transcript items and runs as entries.
import { FAILED, type Run, type TranscriptItem } from "@/api/types";
import { fileOf, isMedia, isObject, textOr, type Entry, type FileRef } from "./entry";
import { entryOfRequest } from "./interaction";
import { toolOutput } from "./tool-output";

export function entriesOfItem(item: TranscriptItem): Entry[] {
  const runId = item.run_id ?? null;
  const id = item.item_id;
  switch (item.role) {
    case "user": {
      const from = item.actor?.actor_name ?? item.actor?.actor_id ?? null;
      const about = { eventId: item.event_id ?? null, at: item.created_at, from, delivery: null };
      return [{ kind: "user", id, runId, text: item.text ?? "", files: filesOf(item), ...about }];
    }
    case "assistant":
      return assistant(item, runId);
    case "tool": {
      const output = toolOutput(item.metadata, item.content ?? item.text ?? null);
      const callId = textOr(item.metadata?.["tool_call_id"], id);
      return [{ kind: "tool", id, callId, runId, ...output }, ...outgoing(`${id}.files`, runId, filesOf(item))];
    }
    default:
      return item.text ? [{ kind: "other", id, runId, text: item.text }] : [];
  }
}

function assistant(item: TranscriptItem, runId: string | null): Entry[] {
  const thoughts = (item.segments ?? []).filter((part) => isObject(part) && part["type"] === "reasoning");
  const entries: Entry[] = thoughts.map((part, index) => ({
    kind: "reasoning",
    id: `${item.item_id}.thought${index}`,
    runId,
    text: isObject(part) ? textOr(part["text"], "") : "",
  }));
  const question = entryOfRequest(item.metadata?.["interaction"], item.item_id, runId);
  if (question) {
    entries.push(question);
  } else if (item.text) {
    entries.push({ kind: "answer", id: item.item_id, runId, text: item.text, at: item.created_at, streaming: false });
  }
  return [...entries, ...outgoing(`${item.item_id}.files`, runId, filesOf(item))];
}

function outgoing(id: string, runId: string | null, files: FileRef[]): Entry[] {
  return files.length > 0 ? [{ kind: "files", id, runId, files }] : [];
}

/** Non-text parts, and artifacts that no part names. */
function filesOf(item: TranscriptItem): FileRef[] {
  const parts = (item.segments ?? []).filter(isMedia).map(fileOf);
  const named = new Set(parts.map((file) => file.artifactId));
  const known = new Map((item.artifacts ?? []).map((artifact) => [artifact.artifact_id, artifact]));
  const complete = parts.map((file) => {
    const artifact = file.artifactId ? known.get(file.artifactId) : undefined;
    return artifact ? { ...file, name: file.name ?? artifact.name ?? null, size: file.size ?? artifact.size_bytes ?? null } : file;
  });
  const others = [...known.values()].filter((artifact) => !named.has(artifact.artifact_id));
  return [...complete, ...others.map((artifact) => fileOf({ ...artifact, metadata: {} } as never))];
}

/** The end of a run, if its messages do not show it. */
export function endOfRun(run: Run): Entry | null {
  const id = `${run.run_id}.end`;
  if (run.status === "cancelled") return { kind: "notice", id, runId: run.run_id, notice: "cancelled" };
  if (!FAILED.has(run.status)) return null;
  const code = run.error?.code ?? (run.status === "timeout" ? "deadline_exceeded" : "runtime_error");
  return { kind: "error", id, runId: run.run_id, agent: run.agent, code, message: run.error?.message ?? "" };
}
