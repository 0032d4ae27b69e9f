// The timeline: entries, their order, and explanations of refusals.

import { describe, expect, it } from "vitest";
import type { JsonObject, RunResult } from "@/api/types";
import { call, story } from "./fixture";
import { Fold } from "./fold";
import { timeline, type Entry } from "./timeline";
import { barOf, spanOf } from "./waterfall";

function steps(...results: [type: string, data: JsonObject, at: string][]) {
  const fold = new Fold();
  results.forEach(([type, data, at], index) => {
    const result: RunResult = { run_id: "run_1", type, data, sequence: index + 1, created_at: `2026-01-02T03:04:05.${at}Z` };
    fold.push(result);
  });
  return fold.steps;
}
const summary = (entries: Entry[]) => entries.map((entry) => `${entry.section} ${entry.kind} ${entry.tone}`);
const lunch = steps(
  ["tool.call.started", { tool_call_id: "t1", tool_name: "project_cli", parameters: { module: "calendar", method: "read", input: { day: "today" } } }, "300"],
  ["tool.call.completed", { tool_call_id: "t1", tool_name: "project_cli", result: { count: 0 }, error: null }, "400"],
  ["message.delta", { chunk: { role: "assistant", content: "Do" } }, "600"],
  ["message.delta", { chunk: { role: "assistant", content: "ne" } }, "700"],
  ["message.completed", { message: { role: "assistant", content: "Done" } }, "710"],
  ["run.completed", { finish_reason: "stop" }, "720"],
);
const model = {
  model: "main", method: "models.stream", at: "2026-01-02T03:04:05.100Z", duration_ms: 150, input_tokens: 100, output_tokens: 20,
  cached_input_tokens: null, tokens: 120, cost_usd: 0.0012, outcome: "stop", failed: false,
};

describe("timeline", () => {
  it("shows a run from its event to its delivery in order", () => {
    const delivery = {
      delivery_id: "d1", surface: "helpdesk", target: "t1", run_id: "r1", conversation_id: null, next_attempt_at: null, sequence: 5, status: "done" as const, attempts: 1, error: null,
      created_at: "2026-01-02T03:04:05.720Z", updated_at: "2026-01-02T03:04:05.900Z",
    };
    const audit = [
      call("models.stream", "100", { resource: "main" }),
      call("tools.call", "301", { resource: "project_cli", scope: "calendar.read" }),
      call("state.get", "050"), call("history.page", "040"),
    ];
    const entries = timeline({ story: story({ model_calls: [model], deliveries: [delivery] }), steps: lunch, audit });
    expect(summary(entries)).toEqual([
      "in event plain", "who binding plain", "who grant plain",
      "work call plain", "work model plain", "work tool ok", "work text ok", "end end ok", "out delivery ok",
    ]);
    expect(entries[3]?.title).toEqual({ key: "runs.call.several", with: { count: 2 } });
    expect(entries[4]).toMatchObject({ hint: "100 → 20 tokens · $0.0012" });
  });

  it("shows every refusal with its reason, apart from successful calls", () => {
    const audit = [
      call("history.page", "010"),
      call("history.search", "020", { code: "unauthorized", scope: "facts" }),
      call("events.page", "030", { code: "unauthorized", scope: "facts" }),
      call("storage.set", "040", { code: "unauthorized", scope: "workspace", resource: "x" }),
      call("artifacts.metadata", "050", { code: "not_found", resource: "art_1" }),
    ];
    const refused = timeline({ story: story(), steps: [], audit }).filter((entry) => entry.kind === "call" && entry.tone !== "plain");
    expect(refused.map((entry) => [entry.tone, entry.notes[0]?.key])).toEqual([
      ["bad", "runs.refused.asked.what"],
      ["bad", "runs.refused.granted.what"],
      ["bad", "runs.refused.granted.what"],
      ["warn", "runs.code.not_found.what"],
    ]);
    expect(refused[1]?.notes[1]?.with).toEqual({ agent: "office", key: "event_log" });
    expect(refused[2]?.title).toEqual({
      key: "runs.call.refusedAbout", with: { act: { key: "runs.act.storage.set" }, about: "workspace · x" },
    });
  });

  it("groups equal refusals into one entry", () => {
    const audit = ["010", "020", "030"].map((at) => call("history.search", at, { code: "unauthorized" }));
    const refused = timeline({ story: story(), steps: [], audit }).filter((entry) => entry.tone === "bad");
    expect(refused).toHaveLength(1);
    expect(refused[0]?.hint).toBe("×3");
  });

  it("explains a failed run by its code, and keeps the runner's message", () => {
    const failed = story();
    failed.run = { ...failed.run, status: "failed", error: { code: "runner.crashed", message: "exited with code 3", retryable: true } };
    const end = timeline({ story: failed, steps: [], audit: [] }).at(-1);
    expect(end).toMatchObject({ kind: "end", tone: "bad", hint: "exited with code 3" });
    expect(end?.notes.map((note) => note.key)).toEqual(["runs.code.runner.crashed.what", "runs.code.runner.crashed.todo", "runs.end.retryable"]);
  });

  it("explains a tool that was denied", () => {
    const denied = steps(
      ["tool.call.started", { tool_call_id: "t1", tool_name: "files.remove", parameters: {} }, "100"],
      ["tool.call.completed", { tool_call_id: "t1", tool_name: "files.remove", error: { code: "DENIED", message: "no" } }, "200"],
    );
    const entry = timeline({ story: story(), steps: denied, audit: [] }).find((one) => one.kind === "tool");
    expect(entry).toMatchObject({ tone: "bad", hint: "no" });
    expect(entry?.notes[0]?.key).toBe("runs.tool.DENIED.what");
  });

  it("distinguishes a denied approval from a tool's own refusal", () => {
    const refused = (error: JsonObject) =>
      timeline({
        story: story(), audit: [],
        steps: steps(["tool.call.completed", { tool_call_id: "t1", tool_name: "x", error }, "200"]),
      }).find((one) => one.kind === "tool")?.notes[0]?.key;
    expect(refused({ code: "unauthorized", details: { reason: "expired" } })).toBe("runs.tool.DENIED.what");
    expect(refused({ code: "unauthorized" })).toBe("runs.code.unauthorized.what");
    expect(refused({ code: "UNAUTHORIZED" })).toBe("runs.tool.UNAUTHORIZED.what");
    expect(refused({ code: "acme.lost" })).toBe("runs.tool.own.what");
  });

  it("shows the subject of an approval and who answered", () => {
    const approval = { approval_id: "a1", action: "tool.call", status: "denied" as const, answered_by: "admin", created_at: "2026-01-02T03:04:05.100Z", answered_at: "2026-01-02T03:04:05.900Z" };
    const known = {
      ...approval, run_id: "run_1", runner_id: "r", agent: "office", nonce: "n", expires_at: "",
      target: { tool_name: "project_cli", risk: "destructive" }, payload: { module: "calendar", method: "delete", input: {} },
    };
    const entry = timeline({ story: story({ approvals: [approval] }), steps: [], audit: [], approvals: [known] }).find((one) => one.kind === "approval");
    expect(entry?.title.with).toEqual({ action: "calendar.delete" });
    expect(entry?.notes).toEqual([{ key: "runs.approval.denied", with: { by: "admin" } }]);
  });

  it("names the fallback of a failed model", () => {
    const calls = [{ ...model, failed: true, outcome: "runtime_error" }, { ...model, model: "spare", at: "2026-01-02T03:04:05.300Z" }];
    const [first] = timeline({ story: story({ model_calls: calls }), steps: [], audit: [] }).filter((entry) => entry.kind === "model");
    expect(first?.notes).toEqual([{ key: "runs.model.down" }, { key: "runs.model.fallback", with: { model: "spare" } }]);
  });

  it("shows the diagnostic of a failed model with its call only", () => {
    const diagnostics = [
      { kind: "model_failed", message: "answered 529", created_at: "2026-01-02T03:04:05.250Z" },
      { kind: "invalid_result", message: "`key` is empty", created_at: "2026-01-02T03:04:05.260Z" },
    ];
    const entries = timeline({ story: story({ model_calls: [{ ...model, failed: true, outcome: "runtime_error" }], diagnostics }), steps: [], audit: [] });
    expect(entries.filter((entry) => entry.section === "work").map((entry) => `${entry.kind} ${entry.hint ?? ""}`)).toEqual(["model answered 529", "diagnostic `key` is empty"]);
  });

  it("shows the activity of a running run, and no end", () => {
    const running = story();
    running.run = { ...running.run, status: "running", finished_at: null };
    const entries = timeline({ story: running, steps: lunch.slice(0, 1).map((step) => ({ ...step, ...(step.kind === "tool" ? { open: true, result: undefined } : {}) })), audit: [] });
    expect(summary(entries).slice(3)).toEqual(["work tool live", "work live live"]);
  });

  it("shows a wait of a run that was queued", () => {
    const waited = story();
    waited.run = { ...waited.run, started_at: "2026-01-02T03:04:05.500Z" };
    expect(summary(timeline({ story: waited, steps: [], audit: [] }))).toContain("who wait plain");
  });
});

describe("waterfall", () => {
  it("positions bars within the duration of a run", () => {
    const entries = timeline({ story: story({ model_calls: [model] }), steps: lunch, audit: [] });
    const span = spanOf(entries, 0);
    expect(span).toEqual({ from: Date.parse("2026-01-02T03:04:05.000Z"), to: Date.parse("2026-01-02T03:04:06.000Z") });
    const bar = span && entries[3] && barOf(entries[3], span, 0);
    expect(bar).toEqual({ left: 10, width: 15 });
  });
});
