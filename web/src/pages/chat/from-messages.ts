// Messages of a live AG-UI run as entries.
import type { Message } from "@ag-ui/core";
import type { Json } from "@/api/types";
import { visibleText, visibleValue } from "@/api/visible";
import { isObject, textOr, type Entry, type ToolEntry } from "./entry";
import { PLAN, stepsOf } from "./plan";
import { toolOutput } from "./tool-output";

const CARD = "a2ui-surface-";

export interface MessageContext {
  hostRunId: string | null;
  /** The stream is open: the last text may grow, calls without a result are running. */
  live: boolean;
  /** When a message was first received. */
  seenAt: (messageId: string) => string | null;
}

/** Only messages of this run: their ids begin with the run's. */
export function entriesOfMessages(messages: readonly Readonly<Message>[], { hostRunId, live, seenAt }: MessageContext): Entry[] {
  const entries: Entry[] = [];
  const calls = new Map<string, ToolEntry>();
  const own = messages.filter((message) => hostRunId !== null && message.id.startsWith(`${hostRunId}.`));
  own.forEach((message, index) => {
    if (message.role === "assistant") {
      for (const call of message.toolCalls ?? []) {
        const entry = startedCall(call.id, call.function, hostRunId, live);
        calls.set(call.id, entry);
        entries.push(entry);
      }
      if (message.content) {
        const streaming = live && index === own.length - 1;
        entries.push({ kind: "answer", id: message.id, runId: hostRunId, text: visibleText(message.content), at: seenAt(message.id), streaming });
      }
    } else if (message.role === "tool") {
      finishCall(calls.get(message.toolCallId), message);
    } else if (message.role === "reasoning") {
      insertReasoning(entries, { kind: "reasoning", id: message.id, runId: hostRunId, text: visibleText(message.content) }, own[index + 1]?.id);
    } else if (message.role === "activity" && message.activityType === PLAN) {
      const steps = stepsOf(visibleValue(message.content));
      if (steps.length > 0) entries.push({ kind: "plan", id: message.id, runId: hostRunId, steps });
    }
  });
  for (const message of messages) {
    const entry = message.role === "activity" && message.id.startsWith(CARD) ? calls.get(message.id.slice(CARD.length)) : undefined;
    if (entry && message.role === "activity") entry.card ??= operationsOf(visibleValue(message.content));
  }
  return entries;
}

function startedCall(callId: string, asked: { name: string; arguments: string }, hostRunId: string | null, live: boolean): ToolEntry {
  const state = live ? "running" : "stopped";
  const args = visibleValue(parsed(asked.arguments));
  return { kind: "tool", id: callId, callId, runId: hostRunId, name: asked.name, args, state, result: null, error: null, card: null };
}

function finishCall(entry: ToolEntry | undefined, message: Extract<Message, { role: "tool" }>): void {
  if (!entry) return;
  const content = typeof message.content === "string" ? message.content : JSON.stringify(message.content);
  const output = toolOutput(visibleValue((message as { metadata?: unknown }).metadata), visibleText(content));
  // The arguments of the call are known already, in better form.
  Object.assign(entry, output, { name: entry.name, args: output.args ?? entry.args });
}

/** Reasoning arrives after its text unless both share a number; it is shown before it. */
function insertReasoning(entries: Entry[], thought: Entry, nextId: string | undefined): void {
  const leadsToNext = nextId !== undefined && thought.id.startsWith(`${nextId}.`);
  if (!leadsToNext && entries.at(-1)?.kind === "answer") entries.splice(entries.length - 1, 0, thought);
  else entries.push(thought);
}

function operationsOf(content: unknown): Json[] | null {
  const operations = isObject(content) ? content["a2ui_operations"] : null;
  return Array.isArray(operations) ? operations : null;
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return textOr(text, "");
  }
}
