// What of the host needs somebody's look, the worst first.
import type { Runner, ToolServer } from "../../api/types";
import type { ModelFigures, Overview } from "../../api/types-overview";

export type Problem =
  | { kind: "store" }
  | { kind: "runner"; name: string; status: string }
  | { kind: "server"; name: string; status: string }
  | { kind: "model"; name: string; code: string }
  | { kind: "approvals"; count: number }
  | { kind: "deliveries"; count: number };

/** A few deliveries on their way are no news. */
const DELIVERIES_WAITING = 10;

export function problemsOf(overview: Overview, runners: readonly Runner[], servers: readonly ToolServer[]): Problem[] {
  const problems: Problem[] = [];
  if (!overview.store.ok) problems.push({ kind: "store" });
  for (const { name, status = "unknown" } of runners) {
    if (isAway(status)) problems.push({ kind: "runner", name, status });
  }
  for (const { name, status } of servers) {
    if (isAway(status)) problems.push({ kind: "server", name, status });
  }
  for (const model of overview.models) {
    if (model.last_error && modelStatus(model) === "failing") problems.push({ kind: "model", name: model.name, code: model.last_error.code });
  }
  const { waiting_approvals: approvals, deliveries_waiting: deliveries } = overview.queue;
  if (approvals) problems.push({ kind: "approvals", count: approvals });
  if (deliveries && deliveries >= DELIVERIES_WAITING) problems.push({ kind: "deliveries", count: deliveries });
  return problems;
}

/** A model fails when its last failure came after its last success. */
export function modelStatus(model: ModelFigures): "ok" | "failing" | "idle" {
  if (model.last_error && (!model.last_ok_at || model.last_error.at > model.last_ok_at)) return "failing";
  return model.last_ok_at ? "ok" : "idle";
}

function isAway(status: string): boolean {
  return status === "backing_off" || status === "failed" || status === "stopped" || status === "disconnected";
}
