// Entries of a run's results: texts, tool calls, files, state and requests.

import type { Story } from "@/api/types";
import { explainTool } from "./explain";
import type { FactStep, Step, TextStep, ToolStep } from "./fold";
import { short, text } from "./read";
import { say } from "./say";
import type { Entry } from "./timeline";

/** Undefined for steps shown in another section: the end. */
export function stepEntry(step: Step, story: Story): Entry | undefined {
  switch (step.kind) {
    case "text":
      return textEntry(step, story);
    case "tool":
      return toolEntry(step, story);
    case "end":
      return undefined;
    default:
      return factEntry(step, story);
  }
}

function spanOf(step: Step): Pick<Entry, "id" | "section" | "start" | "end"> {
  return {
    id: `step-${String(step.first)}`, section: "work",
    ...(step.start === undefined ? {} : { start: step.start }), ...(step.end === undefined ? {} : { end: step.end }),
  };
}

function textEntry(step: TextStep, story: Story): Entry {
  const isOld = step.attempt < story.run.attempt;
  const isOpen = !step.whole && story.run.status === "running" && !isOld;
  const notes = isOld ? [say("runs.text.old")] : [];
  if (step.cut !== undefined) notes.push(say(cutKey(step.cut), { reason: step.cut }));
  return {
    ...spanOf(step), kind: "text", tone: step.cut === undefined ? (isOpen ? "live" : isOld || !step.whole ? "plain" : "ok") : "warn",
    title: say(isOpen ? "runs.text.writing" : step.whole ? "runs.text.title" : "runs.text.part"), hint: short(step.text, 160), notes,
    ...(isOpen ? { open: true } : {}), detail: { type: "text", text: step.text, markdown: true },
  };
}

/** Why an answer was cut off. */
export function cutKey(reason: string): "runs.cut.length" | "runs.cut.content_filter" | "runs.cut.other" {
  if (reason === "length") return "runs.cut.length";
  return reason === "content_filter" ? "runs.cut.content_filter" : "runs.cut.other";
}

function toolEntry(step: ToolStep, story: Story): Entry {
  const isOpen = step.open && story.run.status === "running";
  const failed = step.error !== undefined;
  const why = step.error === undefined ? undefined : explainTool(step.error, step.name, story.run.agent);
  const message = text(step.error, "message");
  const tone = failed ? "bad" : isOpen ? "live" : step.open || step.result === undefined ? "warn" : "ok";
  return {
    ...spanOf(step), kind: "tool", tone,
    title: say(failed ? "runs.tool.failed" : isOpen ? "runs.tool.open" : "runs.tool.title", { tool: step.name }),
    hint: failed && message !== undefined ? short(message, 160) : short(oneLine(step.input), 120),
    notes: why === undefined ? (tone === "warn" ? [say("runs.tool.unanswered")] : []) : [why.what, why.todo],
    ...(isOpen ? { open: true } : {}),
    detail: { type: "io", input: step.input, output: step.result, error: step.error },
  };
}

/** Arguments in short form: `mode: day, date: 2026-11-16`. */
export function oneLine(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return value.map(oneLine).join(", ");
  return Object.entries(value)
    .map(([key, inner]) => `${key}: ${typeof inner === "object" && inner !== null ? JSON.stringify(inner) : String(inner)}`)
    .join(", ");
}

function factEntry(step: FactStep, story: Story): Entry {
  const base = { ...spanOf(step), notes: [], detail: { type: "json", value: step.data } as const };
  switch (step.kind) {
    case "artifact":
      return { ...base, kind: "artifact", tone: "ok", title: say("runs.artifact.title", { name: text(step.data, "name") ?? text(step.data, "artifact_id") ?? "?" }), hint: text(step.data, "mime_type") ?? "" };
    case "state":
      return { ...base, kind: "state", tone: "plain", title: say("runs.state.title", { key: text(step.data, "key") ?? "?" }), hint: text(step.data, "scope") ?? "" };
    case "action":
      return { ...base, kind: "action", tone: "plain", title: say("runs.action.title", { action: text(step.data, "action") ?? "?" }), notes: [say("runs.action.note")] };
    case "restarted":
      return { ...base, kind: "restarted", tone: "warn", title: say("runs.restarted.title", { attempt: step.attempt }), notes: [say("runs.restarted.note", { agent: story.run.agent })] };
    default:
      return { ...base, kind: "other", tone: "plain", title: say("runs.other.title", { type: step.type }), notes: [say("runs.other.note")] };
  }
}
