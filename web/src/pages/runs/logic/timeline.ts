// The timeline of a run: everything known about it, in order and in sections.

import type { Approval, AuditRecord, EventView, Grant, Json, Story, StoryApproval } from "@/api/types";
import { callEntries, isShownByCall } from "./calls";
import { endEntries } from "./ending";
import type { Step } from "./fold";
import { number, text, time } from "./read";
import { say, type Say } from "./say";
import { stepEntry } from "./steps";

export type Tone = "plain" | "ok" | "bad" | "warn" | "live";
export type Section = "in" | "who" | "work" | "end" | "out";
export type EntryKind =
  | "event" | "binding" | "grant" | "wait" | "model" | "tool" | "call" | "text" | "state" | "artifact"
  | "action" | "approval" | "restarted" | "diagnostic" | "other" | "live" | "end" | "delivery";

export type Detail =
  | { type: "none" }
  | { type: "text"; text: string; markdown: boolean }
  | { type: "io"; input: Json | undefined; output: Json | undefined; error: Json | undefined }
  | { type: "json"; value: Json }
  | { type: "event"; event: EventView }
  | { type: "grant"; grant: Grant }
  | { type: "calls"; records: AuditRecord[] }
  | { type: "facts"; facts: Fact[] };

/** A name-value pair. */
export interface Fact {
  name: Say;
  value: string;
}

export interface Entry {
  id: string;
  section: Section;
  kind: EntryKind;
  tone: Tone;
  title: Say;
  /** Short text beside the title. */
  hint?: string;
  /** What happened and what to do, as sentences. */
  notes: Say[];
  /** Milliseconds since 1970. */
  start?: number;
  end?: number;
  open?: boolean;
  detail: Detail;
}

export interface Sources {
  story: Story;
  steps: readonly Step[];
  audit: readonly AuditRecord[];
  /** The approvals of the run in detail, if the user may see them. */
  approvals?: readonly Approval[];
}

export const SECTIONS: readonly Section[] = ["in", "who", "work", "end", "out"];

export function timeline(sources: Sources): Entry[] {
  return [...incoming(sources.story), ...work(sources), ...endEntries(sources.story, sources.steps)];
}

function incoming(story: Story): Entry[] {
  const { run, event, binding, grant } = story;
  const accepted = time(run.created_at);
  const at = accepted === undefined ? {} : { start: accepted, end: accepted };
  const entries: Entry[] = [];
  const input = text(event?.event, "event_type") === undefined ? "" : (inputText(event) ?? "");
  entries.push({
    id: "event", section: "in", kind: "event", tone: "plain", ...at,
    title: event === null ? say("runs.event.gone") : event.event_type === "message.received" ? say("runs.event.message") : say("runs.event.title", { type: event.event_type }),
    hint: input, notes: eventNotes(story),
    detail: event === null ? { type: "none" } : { type: "event", event },
  });
  entries.push({
    id: "binding", section: "who", kind: "binding", tone: "plain", ...at,
    title: say("runs.binding.title", { agent: binding.agent }), notes: bindingNotes(story), detail: bindingFacts(story),
  });
  if (grant !== null) {
    entries.push({
      id: "grant", section: "who", kind: "grant", tone: "plain", ...at,
      title: say("runs.grant.title"), notes: [say("runs.grant.note")], detail: { type: "grant", grant },
    });
  }
  const started = time(run.started_at);
  const isQueued = run.status === "queued";
  if (accepted !== undefined && (isQueued || (started !== undefined && started - accepted >= 20))) {
    entries.push({
      id: "wait", section: "who", kind: "wait", tone: isQueued ? "live" : "plain",
      title: say(isQueued ? "runs.wait.now" : "runs.wait.title"), notes: [say("runs.wait.note")],
      start: accepted, ...(started === undefined ? { open: true } : { end: started }), detail: { type: "none" },
    });
  }
  return entries;
}

/** The user's text, if the event has one. */
export function inputText(event: EventView | null): string | undefined {
  const body = event?.event;
  const input = typeof body === "object" && body !== null && !Array.isArray(body) ? body["input"] : undefined;
  return text(input, "text");
}

function eventNotes(story: Story): Say[] {
  const notes: Say[] = [];
  const body = story.event?.event;
  const actor = typeof body === "object" && body !== null && !Array.isArray(body) ? body["actor"] : undefined;
  const who = text(actor, "actor_name") ?? text(actor, "actor_id");
  const source = story.event?.source ?? "?";
  notes.push(who === undefined ? say("runs.event.from", { source }) : say("runs.event.fromWhom", { source, who }));
  if (story.replay_of !== null) notes.push(say("runs.event.replay"));
  if (story.truncated["event"] === true) notes.push(say("runs.event.truncated"));
  return notes;
}

const REASONS = ["named", "only_match", "before_built_in", "slash_command", "narrower_scope", "more_filters", "exact_event_type"] as const;
type Reason = (typeof REASONS)[number];

/** Why this agent was chosen. */
export function reasonOf(reason: string | null): Say | undefined {
  return (REASONS as readonly string[]).includes(reason ?? "") ? say(`runs.reason.${reason as Reason}`) : undefined;
}

function bindingNotes(story: Story): Say[] {
  const { binding, run } = story;
  const reason = reasonOf(binding.reason);
  const notes = reason === undefined ? [] : [reason];
  if (binding.beside.length > 0) notes.push(say("runs.binding.beside", { names: binding.beside.join(", ") }));
  if (run.attempt > 1) notes.push(say("runs.binding.attempt", { attempt: run.attempt }));
  return notes;
}

function bindingFacts(story: Story): Detail {
  const { binding, runner } = story;
  const facts: Fact[] = [
    { name: say("runs.fact.runner"), value: runner.runner_id },
    { name: say("runs.fact.queue"), value: binding.queue },
    { name: say("runs.fact.deadline"), value: `${String(binding.deadline_s)} s` },
  ];
  if (binding.delivery !== null) facts.push({ name: say("runs.fact.delivery"), value: binding.delivery });
  if (runner.isolation !== null) facts.push({ name: say("runs.fact.isolation"), value: runner.isolation });
  return { type: "facts", facts };
}

/** Everything that happened during the run, by start time. */
function work({ story, steps, audit, approvals }: Sources): Entry[] {
  const calls = callEntries(story, steps, audit);
  const timed: { at: number; order: number; entry: Entry }[] = [];
  const startedAt = time(story.run.started_at ?? story.run.created_at) ?? 0;
  let before = startedAt;
  for (const step of steps) {
    const entry = stepEntry(step, story);
    if (entry === undefined) continue;
    before = entry.start ?? before;
    timed.push({ at: before, order: 2, entry });
  }
  for (const entry of [...calls, ...asides(story, approvals ?? [])]) {
    timed.push({ at: entry.start ?? startedAt, order: entry.kind === "diagnostic" ? 3 : 1, entry });
  }
  timed.sort((a, b) => a.at - b.at || a.order - b.order);
  const entries = timed.map(({ entry }) => entry);
  if (story.run.status === "running") {
    entries.push({
      id: "live", section: "work", kind: "live", tone: "live", title: say("runs.live.title"), notes: [], open: true,
      detail: { type: "none" },
    });
  }
  return entries;
}

/** Approvals and diagnostics. */
function asides(story: Story, approvals: readonly Approval[]): Entry[] {
  const asked = story.approvals.map((one) => approvalEntry(one, approvals.find((known) => known.approval_id === one.approval_id)));
  const notes = story.diagnostics.filter((note) => !isShownByCall(note, story));
  const diagnostics = notes.map((note, index): Entry => {
    const at = time(note.created_at);
    const kinds = ["invalid_result", "unknown_type", "model_failed", "after_terminal", "refused_result", "duplicate"] as const;
    const kind = kinds.find((word) => word === note.kind);
    return {
      id: `diagnostic-${String(index)}`, section: "work", kind: "diagnostic", tone: "warn",
      title: say(kind === undefined ? "runs.diagnostic.title" : `runs.diagnostic.${kind}`, { kind: note.kind }), hint: note.message, notes: [],
      ...(at === undefined ? {} : { start: at, end: at }), detail: { type: "text", text: note.message, markdown: false },
    };
  });
  return [...asked, ...diagnostics];
}

const ANSWERS = ["allowed", "denied", "expired", "cancelled"] as const;

function approvalEntry(approval: StoryApproval, known: Approval | undefined): Entry {
  const [start, end] = [time(approval.created_at), time(approval.answered_at)];
  const answer = ANSWERS.find((word) => word === approval.status);
  const call = known?.payload ?? {};
  const method = [text(call, "module"), text(call, "method")].filter((part) => part !== undefined).join(".");
  const tool = text(known?.target, "tool_name");
  const what = tool === "project_cli" && method !== "" ? method : (tool ?? approval.action);
  return {
    id: `approval-${approval.approval_id}`, section: "work", kind: "approval",
    tone: answer === undefined ? "live" : answer === "allowed" ? "ok" : "warn",
    title: say("runs.approval.title", { action: what }),
    notes: [say(answer === undefined ? "runs.approval.pending" : `runs.approval.${answer}`, { by: approval.answered_by ?? "?" })],
    ...(start === undefined ? {} : { start }), ...(end === undefined ? { open: answer === undefined } : { end }),
    detail: known === undefined ? { type: "none" } : { type: "json", value: { ...known.target, ...known.payload } },
  };
}

/** Cost and tokens, if known. */
export function usageOf(story: Story): { calls: number; tokens: number | undefined; cost: number | undefined } {
  const totals = story.run.model_calls;
  return { calls: number(totals, "calls") ?? 0, tokens: number(totals, "tokens"), cost: number(totals, "cost_usd") };
}
