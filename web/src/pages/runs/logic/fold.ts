// Folds the results of a run into steps: deltas become one text, a call and its result one step.
// Incremental, so that a run of many thousand results is folded while it is read.

import type { Json, JsonObject, RunResult } from "@/api/types";
import { contentText, field, number, object, text, time } from "./read";

interface StepSpan {
  /** Sequence of the first result of the step: its identity. */
  first: number;
  last: number;
  start?: number;
  end?: number;
  attempt: number;
}

export interface TextStep extends StepSpan {
  kind: "text";
  role: string;
  text: string;
  messageId?: string;
  deltas: number;
  whole: boolean;
  /** Why the model stopped before its end, if it did. */
  cut?: string;
}

export interface ToolStep extends StepSpan {
  kind: "tool";
  callId: string;
  tool: string;
  /** For the project CLI its method, such as `calendar.read`. */
  name: string;
  input: Json | undefined;
  result: Json | undefined;
  error: JsonObject | undefined;
  open: boolean;
}

export interface FactStep extends StepSpan {
  kind: "artifact" | "state" | "action" | "restarted" | "end" | "other";
  type: string;
  data: JsonObject;
  usage?: JsonObject;
}

export type Step = TextStep | ToolStep | FactStep;

const FACTS: Record<string, FactStep["kind"]> = {
  "artifact.created": "artifact",
  "state.updated": "state",
  "action.requested": "action",
  "run.restarted": "restarted",
  "run.completed": "end",
  "run.failed": "end",
};
const WHOLE = ["", "stop", "tool_calls", "end_turn"];

export class Fold {
  readonly steps: Step[] = [];
  /** Number of results folded. */
  count = 0;
  lastSequence = 0;
  private attempt = 1;
  private text: TextStep | undefined;
  private calls = new Map<string, ToolStep>();

  /** Folds one result; a duplicate changes nothing. */
  push(result: RunResult): void {
    const sequence = result.sequence ?? 0;
    if (sequence <= this.lastSequence) return;
    this.lastSequence = sequence;
    this.count += 1;
    switch (result.type) {
      case "message.delta":
        return this.delta(result);
      case "message.completed":
        return this.message(result);
      case "tool.call.started":
        return this.toolStarted(result);
      case "tool.call.completed":
        return this.toolCompleted(result);
      default:
        return this.fact(result);
    }
  }

  get ended(): boolean {
    return this.steps.at(-1)?.kind === "end";
  }

  private span(result: RunResult): StepSpan {
    const at = time(result.created_at);
    const span: StepSpan = { first: this.lastSequence, last: this.lastSequence, attempt: this.attempt };
    return at === undefined ? span : { ...span, start: at, end: at };
  }

  private delta(result: RunResult): void {
    const chunk = object(field(result.data, "chunk"));
    const id = text(chunk, "message_id");
    const piece = contentText(chunk?.["content"]);
    const replaces = chunk?.["replace"] === true;
    if (replaces) this.retract();
    const open = this.text;
    if (open !== undefined && (replaces || id === undefined || open.messageId === undefined || open.messageId === id)) {
      open.text = replaces ? piece : open.text + piece;
      open.deltas += 1;
      extend(open, result);
      if (id !== undefined) open.messageId = id;
      return;
    }
    const step: TextStep = {
      kind: "text", ...this.span(result), role: text(chunk, "role") ?? "assistant",
      text: piece, deltas: 1, whole: false, ...(id === undefined ? {} : { messageId: id }),
    };
    this.text = step;
    this.steps.push(step);
  }

  /** Removes unfinished texts that a replacing delta makes invalid, except the open one. */
  private retract(): void {
    for (let at = this.steps.length - 1; at >= 0; at -= 1) {
      const step = this.steps[at];
      if (step?.kind !== "text") continue;
      if (step.whole || step.attempt !== this.attempt) return;
      if (step !== this.text) this.steps.splice(at, 1);
    }
  }

  private message(result: RunResult): void {
    const message = object(field(result.data, "message"));
    const content = contentText(message?.["content"]);
    const reason = text(message?.["metadata"], "finish_reason") ?? "";
    const cut = WHOLE.includes(reason) ? {} : { cut: reason };
    const open = this.text;
    this.text = undefined;
    if (open !== undefined && content.trimEnd().endsWith(open.text.trim())) {
      if (content.length > open.text.length && !this.saidBefore(open, content)) open.text = content;
      Object.assign(open, { whole: true, ...cut });
      return extend(open, result);
    }
    this.steps.push({
      kind: "text", ...this.span(result), role: text(message, "role") ?? "assistant",
      text: content, deltas: 0, whole: true, ...cut,
    });
  }

  /** Whether earlier texts already contain the message up to its last part. */
  private saidBefore(open: TextStep, content: string): boolean {
    const rest = content.slice(0, content.length - open.text.length).trim();
    if (rest === "") return true;
    const last = this.steps.findLast((step) => step.kind === "text" && step !== open);
    return last?.kind === "text" && last.text.trim() !== "" && rest.endsWith(last.text.trim());
  }

  private toolStarted(result: RunResult): void {
    this.text = undefined;
    const data = result.data ?? {};
    const callId = text(data, "tool_call_id") ?? `seq-${String(this.lastSequence)}`;
    const step: ToolStep = {
      kind: "tool", ...this.span(result), callId, ...named(data), result: undefined,
      error: undefined, open: true,
    };
    this.calls.set(callId, step);
    this.steps.push(step);
  }

  private toolCompleted(result: RunResult): void {
    const data = result.data ?? {};
    const callId = text(data, "tool_call_id") ?? "";
    let step = this.calls.get(callId);
    if (step === undefined) {
      this.text = undefined;
      step = { kind: "tool", ...this.span(result), callId, ...named(data), result: undefined, error: undefined, open: true };
      this.steps.push(step);
    }
    this.calls.delete(callId);
    const error = data["error"];
    step.result = data["result"];
    step.error = typeof error === "string" ? { message: error } : object(error);
    step.open = false;
    extend(step, result);
  }

  private fact(result: RunResult): void {
    const kind = FACTS[result.type] ?? "other";
    this.text = undefined;
    const data = result.data ?? {};
    if (kind === "restarted") this.attempt = number(data, "attempt") ?? this.attempt + 1;
    const usage = object(result.usage);
    this.steps.push({
      kind, ...this.span(result), type: result.type, data, ...(usage === undefined ? {} : { usage }),
    });
    if (kind === "end") for (const call of this.calls.values()) call.open = false;
  }
}

function extend(step: StepSpan, result: RunResult): void {
  step.last = result.sequence ?? step.last;
  const at = time(result.created_at);
  if (at === undefined) return;
  step.start ??= at;
  step.end = Math.max(step.end ?? at, at);
}

function named(data: JsonObject): Pick<ToolStep, "tool" | "name" | "input"> {
  const tool = text(data, "tool_name") ?? "?";
  const parameters = data["parameters"];
  const [module, method] = [text(parameters, "module"), text(parameters, "method")];
  if (tool === "project_cli" && module !== undefined && method !== undefined) {
    return { tool, name: `${module}.${method}`, input: field(parameters, "input") };
  }
  return { tool, name: tool, input: parameters };
}

/** The last answer of a run, complete or not. */
export function answerOf(steps: readonly Step[]): string {
  const attempt = steps.at(-1)?.attempt ?? 1;
  const texts = steps.filter((step): step is TextStep => step.kind === "text" && step.attempt === attempt && step.text.trim() !== "");
  return texts.at(-1)?.text ?? "";
}
