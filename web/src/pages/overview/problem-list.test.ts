// What counts as a problem, and in which order.
import { expect, test } from "vitest";
import type { ModelFigures, Overview, Runner, ToolServer } from "../../api/types";
import { modelStatus, problemsOf } from "./problem-list";

const model: ModelFigures = {
  name: "main",
  provider: "openai",
  configured: true,
  calls: 2,
  failed: 1,
  input_tokens: null,
  output_tokens: null,
  cost_usd: null,
  last_ok_at: "2026-11-15T15:00:00.000Z",
  last_error: { code: "rate_limited", at: "2026-11-15T15:01:00.000Z" },
};

function overview(part: Partial<Overview>): Overview {
  return {
    store: { kind: "sqlite", ok: true, sync: "full", size_bytes: 1 },
    queue: { queued: 0, running: 0, waiting_approvals: 0, deliveries_waiting: 3, deliveries_failed: 0, deliveries_unknown: 0 },
    models: [],
    ...part,
  } as Overview;
}

const runner = (name: string, status: Runner["status"]) => ({ name, status }) as Runner;
const server = (name: string, status: ToolServer["status"]) => ({ name, status }) as ToolServer;

test("a healthy host has no problems", () => {
  expect(problemsOf(overview({}), [runner("a", "ready"), runner("b", "starting")], [server("c", "ready")])).toEqual([]);
});

test("the store comes first, approvals last", () => {
  const troubled = overview({
    store: { kind: "sqlite", ok: false, sync: "full", size_bytes: null },
    queue: { queued: null, running: null, waiting_approvals: 2, deliveries_waiting: 10, deliveries_failed: 1, deliveries_unknown: 4 },
    models: [model],
  });
  expect(problemsOf(troubled, [runner("r", "backing_off")], [server("s", "failed")])).toEqual([
    { kind: "store" },
    { kind: "runner", name: "r", trouble: "restarting" },
    { kind: "server", name: "s", trouble: "failed" },
    { kind: "model", name: "main", code: "rate_limited" },
    { kind: "undelivered", status: "failed", count: 1 },
    { kind: "undelivered", status: "unknown", count: 4 },
    { kind: "approvals", count: 2 },
    { kind: "deliveries", count: 10 },
  ]);
});

test("a model that succeeded after its failure is fine", () => {
  expect(modelStatus(model)).toBe("failing");
  expect(modelStatus({ ...model, last_ok_at: "2026-11-15T15:02:00.000Z" })).toBe("ok");
  expect(modelStatus({ ...model, last_ok_at: null })).toBe("failing");
  expect(modelStatus({ ...model, last_ok_at: null, last_error: null })).toBe("idle");
});

test("a first start is no problem, repeated restarts are", () => {
  const again = { ...runner("r", "starting"), restarts: 3 };
  expect(problemsOf(overview({}), [runner("first", "starting"), again], [])).toEqual([{ kind: "runner", name: "r", trouble: "restarting" }]);
});
