// Problems of the host, worst first.
import type { ModelFigures, Overview, Runner, ToolServer } from "../../api/types";

export type Problem =
  | { kind: "store" }
  | { kind: "runner"; name: string; trouble: Trouble }
  | { kind: "server"; name: string; trouble: Trouble }
  | { kind: "model"; name: string; code: string }
  | { kind: "approvals"; count: number }
  | { kind: "deliveries"; count: number }
  | { kind: "undelivered"; status: "failed" | "unknown"; count: number };

/** The problem of a process. */
export type Trouble = "restarting" | "failed" | "stopped" | "disconnected";

/** A few pending deliveries are normal. */
const DELIVERIES_WAITING = 10;

export function problemsOf(overview: Overview, runners: readonly Runner[], servers: readonly ToolServer[]): Problem[] {
  const problems: Problem[] = [];
  if (!overview.store.ok) problems.push({ kind: "store" });
  for (const runner of runners) {
    const trouble = troubleOf(runner);
    if (trouble) problems.push({ kind: "runner", name: runner.name, trouble });
  }
  for (const server of servers) {
    const trouble = troubleOf(server);
    if (trouble) problems.push({ kind: "server", name: server.name, trouble });
  }
  for (const model of overview.models) {
    if (model.last_error && modelStatus(model) === "failing") problems.push({ kind: "model", name: model.name, code: model.last_error.code });
  }
  const { waiting_approvals: approvals, deliveries_waiting: deliveries, deliveries_failed: failed, deliveries_unknown: unknown } = overview.queue;
  if (failed) problems.push({ kind: "undelivered", status: "failed", count: failed });
  if (unknown) problems.push({ kind: "undelivered", status: "unknown", count: unknown });
  if (approvals) problems.push({ kind: "approvals", count: approvals });
  if (deliveries && deliveries >= DELIVERIES_WAITING) problems.push({ kind: "deliveries", count: deliveries });
  return problems;
}

/** A model fails when its last failure came after its last success. */
export function modelStatus(model: ModelFigures): "ok" | "failing" | "idle" {
  if (model.last_error && (!model.last_ok_at || model.last_error.at > model.last_ok_at)) return "failing";
  return model.last_ok_at ? "ok" : "idle";
}

/** A process that restarts after a failure counts as a problem until it is ready. */
function troubleOf({ status, restarts = 0 }: { status?: string; restarts?: number }): Trouble | null {
  if (status === "backing_off" || (status === "starting" && restarts > 0)) return "restarting";
  return status === "failed" || status === "stopped" || status === "disconnected" ? status : null;
}
