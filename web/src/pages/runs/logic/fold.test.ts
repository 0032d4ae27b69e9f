// Folding results into steps.

import { describe, expect, it } from "vitest";
import type { JsonObject, RunResult } from "@/api/types";
import { answerOf, Fold } from "./fold";

let sequence = 0;
function result(type: string, data: JsonObject | null, at?: string): RunResult {
  sequence += 1;
  return { run_id: "r1", type, data: data ?? {}, sequence, ...(at ? { created_at: at } : {}) };
}
const delta = (content: string, id?: string) =>
  result("message.delta", { chunk: { role: "assistant", content, ...(id ? { message_id: id } : {}) } });
const message = (content: string, metadata = {}) =>
  result("message.completed", { message: { role: "assistant", content, metadata } });
function fold(results: RunResult[]): Fold {
  const folded = new Fold();
  for (const one of results) folded.push(one);
  return folded;
}

describe("Fold", () => {
  it("joins deltas into one text, completed by the message", () => {
    const { steps } = fold([delta("Hel"), delta("lo"), message("Hello"), result("run.completed", {})]);
    expect(steps.map((step) => step.kind)).toEqual(["text", "end"]);
    expect(steps[0]).toMatchObject({ text: "Hello", deltas: 2, whole: true });
  });

  it("replaces unfinished text, also from before a tool call", () => {
    const replacing = result("message.delta", { chunk: { role: "assistant", content: "Four", replace: true } });
    replacing.sequence = 1_000_000;
    const { steps } = fold([
      delta("Thinking"),
      result("tool.call.started", { tool_call_id: "t1", tool_name: "x" }),
      delta(" more"),
      replacing,
    ]);
    expect(steps.map((step) => (step.kind === "text" ? step.text : step.kind))).toEqual(["tool", "Four"]);
  });

  it("begins a new text after a tool call and after another message id", () => {
    const { steps } = fold([
      delta("Let me look"),
      result("tool.call.started", { tool_call_id: "t1", tool_name: "files.read", parameters: { path: "a" } }),
      result("tool.call.completed", { tool_call_id: "t1", tool_name: "files.read", result: { ok: 1 }, error: null }),
      delta("Found", "m1"),
      delta("Other", "m2"),
    ]);
    expect(steps.map((step) => (step.kind === "text" ? step.text : step.kind))).toEqual([
      "Let me look", "tool", "Found", "Other",
    ]);
    expect(steps[1]).toMatchObject({ name: "files.read", open: false, result: { ok: 1 }, error: undefined });
  });

  it("does not repeat text from before a call when the message is complete", () => {
    const { steps } = fold([
      delta("Let me look. "),
      result("tool.call.started", { tool_call_id: "t1", tool_name: "x" }),
      result("tool.call.completed", { tool_call_id: "t1", tool_name: "x", error: null }),
      delta("Found it."),
      message("Let me look. Found it."),
    ]);
    expect(steps.filter((step) => step.kind === "text").map((step) => step.kind === "text" && step.text)).toEqual([
      "Let me look. ", "Found it.",
    ]);
  });

  it("names a call of the project CLI after its method", () => {
    const { steps } = fold([
      result("tool.call.started", {
        tool_call_id: "t1", tool_name: "project_cli",
        parameters: { module: "calendar", method: "read", input: { mode: "day" } },
      }),
    ]);
    expect(steps[0]).toMatchObject({ tool: "project_cli", name: "calendar.read", input: { mode: "day" }, open: true });
  });

  it("ignores duplicate results", () => {
    const first = delta("a");
    const folded = fold([first, first, delta("b")]);
    expect(folded.steps).toHaveLength(1);
    expect(folded.steps[0]).toMatchObject({ text: "ab" });
    expect(folded.count).toBe(2);
  });

  it("counts attempts and returns the last answer", () => {
    const { steps } = fold([delta("first try"), result("run.restarted", { attempt: 2 }), delta("second try")]);
    expect(steps.map((step) => step.attempt)).toEqual([1, 2, 2]);
    expect(answerOf(steps)).toBe("second try");
  });

  it("keeps the reason of a cut answer, and none for a normal end", () => {
    expect(fold([message("a", { finish_reason: "length" })]).steps[0]).toMatchObject({ cut: "length" });
    expect(fold([message("a", { finish_reason: "stop" })]).steps[0]).not.toHaveProperty("cut");
  });

  it("closes open calls when the run ends", () => {
    const { steps } = fold([
      result("tool.call.started", { tool_call_id: "t1", tool_name: "x" }),
      result("run.failed", { code: "cancelled", message: "cancelled" }),
    ]);
    expect(steps[0]).toMatchObject({ open: false });
  });

  it("folds 20,000 deltas into one step", () => {
    const folded = new Fold();
    for (let i = 1; i <= 20_000; i += 1) {
      folded.push({ run_id: "r", type: "message.delta", sequence: i, data: { chunk: { role: "assistant", content: "x" } } });
    }
    expect(folded.steps).toHaveLength(1);
    expect(folded.steps[0]).toMatchObject({ deltas: 20_000, first: 1, last: 20_000 });
  });

  it("survives results without data", () => {
    const { steps } = fold([
      result("message.delta", null), result("tool.call.completed", {}), result("message.completed", {}), result("odd.kind", { x: 1 }),
    ]);
    expect(steps.map((step) => step.kind)).toEqual(["text", "tool", "text", "other"]);
  });
});
