// Entries of a run's calls to the host: model calls and refusals one by one, others grouped.

import type { AuditRecord, Diagnostic, ModelCall, Story } from "@/api/types";
import { aboutOf, actOf, explainFailure, explainRefusal } from "./explain";
import type { Step, ToolStep } from "./fold";
import { time } from "./read";
import { say, type Say } from "./say";
import type { Entry, Fact } from "./timeline";

const MODEL_CALLS = ["models.invoke", "models.stream", "models.rerank", "models.embed"];
/** Maximum distance between a tool call and its audit record. */
const SAME_CALL_MS = 2_000;
/** Maximum distance between a failure and its diagnostic. */
const NOTED_WITHIN_MS = 100;

export function callEntries(story: Story, steps: readonly Step[], audit: readonly AuditRecord[]): Entry[] {
  const hasCalls = story.model_calls.length > 0;
  const tools = steps.filter((step): step is ToolStep => step.kind === "tool");
  const rest = audit.filter((record) => !(hasCalls && isModelCall(record)) && !isShownAsTool(record, tools) && !isIdle(record));
  const models = hasCalls ? story.model_calls.map((call, index) => modelEntry(call, index, story)) : [];
  return [...models, ...groupCalls(rest, story, steps)];
}

/** Polls for new messages are not shown. */
function isIdle(record: AuditRecord): boolean {
  return record.method === "steering.pull" && record.code === "ok";
}

/** A model call; refused ones are among the refusals. */
function isModelCall(record: AuditRecord): boolean {
  return MODEL_CALLS.includes(record.method) && !["unauthorized", "not_found", "invalid_argument"].includes(record.code);
}

function isShownAsTool(record: AuditRecord, tools: readonly ToolStep[]): boolean {
  if (record.method !== "tools.call") return false;
  const at = time(record.at) ?? 0;
  return tools.some(
    (step) =>
      (record.scope === step.name || record.resource === step.name || record.resource === step.tool) &&
      (step.start === undefined || Math.abs(step.start - at) < SAME_CALL_MS),
  );
}

function modelEntry(call: ModelCall, index: number, story: Story): Entry {
  const start = time(call.at);
  const facts: Fact[] = [];
  const add = (name: Fact["name"], value: number | null) => {
    if (value !== null) facts.push({ name, value: value.toLocaleString("en-US") });
  };
  add(say("runs.fact.tokensIn"), call.input_tokens);
  add(say("runs.fact.tokensCached"), call.cached_input_tokens);
  add(say("runs.fact.tokensOut"), call.output_tokens);
  if (call.cost_usd !== null) facts.push({ name: say("runs.fact.cost"), value: `$${String(call.cost_usd)}` });
  if (call.outcome !== null) facts.push({ name: say("runs.fact.outcome"), value: call.outcome });
  const isOpen = call.duration_ms === null && story.run.status === "running";
  return {
    id: `model-${String(index)}`, section: "work", kind: "model",
    tone: call.failed ? "bad" : isOpen ? "live" : "plain",
    title: say(call.failed ? "runs.model.failed" : "runs.model.title", { model: call.model }),
    hint: call.failed ? (noteOf(call, story)?.message ?? hintOf(call)) : hintOf(call), notes: modelNotes(call, index, story),
    ...(start === undefined ? {} : { start, ...(call.duration_ms === null ? {} : { end: start + call.duration_ms }) }),
    ...(isOpen ? { open: true } : {}), detail: { type: "facts", facts },
  };
}

/** The diagnostic of a failed model call. */
function noteOf(call: ModelCall, story: Story): Diagnostic | undefined {
  const from = time(call.at) ?? 0;
  const to = from + (call.duration_ms ?? 0) + NOTED_WITHIN_MS;
  return story.diagnostics.find((note) => {
    const at = time(note.created_at) ?? 0;
    return note.kind === "model_failed" && at >= from && at <= to;
  });
}

/** Whether the entry of a model call already shows a diagnostic. */
export function isShownByCall(note: Diagnostic, story: Story): boolean {
  return story.model_calls.some((call) => call.failed && noteOf(call, story) === note);
}

function hintOf(call: ModelCall): string {
  const parts: string[] = [];
  if (call.input_tokens !== null || call.output_tokens !== null) {
    parts.push(`${String(call.input_tokens ?? "?")} → ${String(call.output_tokens ?? "?")} tokens`);
  } else if (call.tokens !== null) {
    parts.push(`${String(call.tokens)} tokens`);
  }
  if (call.cost_usd !== null) parts.push(`$${call.cost_usd < 0.01 ? call.cost_usd.toPrecision(2) : call.cost_usd.toFixed(2)}`);
  return parts.join(" · ");
}

function modelNotes(call: ModelCall, index: number, story: Story): Say[] {
  if (!call.failed) {
    if (call.outcome === "length") return [say("runs.cut.length")];
    return call.outcome === "content_filter" ? [say("runs.cut.content_filter")] : [];
  }
  const next = story.model_calls[index + 1];
  const code = call.outcome ?? "runtime_error";
  const notes = [code === "runtime_error" ? say("runs.model.down") : explainFailure(code, story.run.agent).what];
  if (next !== undefined && next.model !== call.model) notes.push(say("runs.model.fallback", { model: next.model }));
  return notes;
}

/** Calls in order; adjacent successful calls and equal refusals are grouped. */
function groupCalls(records: readonly AuditRecord[], story: Story, steps: readonly Step[]): Entry[] {
  const sorted = [...records].sort((a, b) => (time(a.at) ?? 0) - (time(b.at) ?? 0));
  const breaks = steps.filter((step) => step.start !== undefined).map((step) => step.start ?? 0);
  breaks.push(...story.model_calls.map((call) => time(call.at) ?? 0));
  breaks.sort((a, b) => a - b);
  const groups: AuditRecord[][] = [];
  let slot = 0;
  for (const record of sorted) {
    const at = time(record.at) ?? 0;
    const before = slot;
    while (slot < breaks.length && (breaks[slot] ?? 0) < at) slot += 1;
    const last = groups.at(-1);
    if (last !== undefined && slot === before && isAlike(last[0], record)) last.push(record);
    else groups.push([record]);
  }
  return groups.map((group, index) => groupEntry(group, index, story));
}

function isAlike(first: AuditRecord | undefined, next: AuditRecord): boolean {
  if (first === undefined) return false;
  if (first.code === "ok") return next.code === "ok";
  return next.code === first.code && next.method === first.method && next.resource === first.resource && next.scope === first.scope;
}

function groupEntry(group: AuditRecord[], index: number, story: Story): Entry {
  const [first] = group as [AuditRecord];
  const starts = group.map((record) => time(record.at) ?? 0);
  const ends = group.map((record, place) => (starts[place] ?? 0) + record.duration_us / 1_000);
  const place = { start: Math.min(...starts), end: Math.max(...ends) };
  const base = { id: `call-${String(index)}-${first.at}`, section: "work", kind: "call", ...place, detail: { type: "calls", records: group } } as const;
  const isOne = group.every((record) => record.method === first.method);
  const count = group.length > 1 && isOne ? { hint: `×${String(group.length)}` } : {};
  if (first.code === "ok") {
    return {
      ...base, tone: "plain", notes: [], ...count,
      title: isOne ? actOf(first.method) : say("runs.call.several", { count: group.length }),
    };
  }
  const why = explainRefusal(first, story.grant);
  const about = aboutOf(first);
  return {
    ...base, tone: first.code === "unauthorized" ? "bad" : "warn", notes: [why.what, why.todo], ...count,
    title: about === "" ? say("runs.call.refused", { act: actOf(first.method) }) : say("runs.call.refusedAbout", { act: actOf(first.method), about }),
  };
}
