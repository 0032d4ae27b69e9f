// A small run as the API returns it, for tests.

import type { AuditRecord, Grant, Story } from "@/api/types";

export const grant: Grant = {
  agent: "office", runner_id: "plugin:acme/office/main", config: {},
  history: { reach: "conversation", operations: ["page"] },
  events: { reach: "none", operations: [] },
  artifacts: { reach: "conversation", operations: ["metadata", "read"] },
  threads: "apart",
  state: ["conversation"], storage: [], actions: { "message.send": "ask" },
  models: { names: ["main"], operations: ["stream"] }, tools: { names: ["project_cli"], operations: ["call", "detail"] },
  knowledge: { names: [], operations: [] }, methods: ["calendar.read"], skills: [],
  risks: { read: "always", destructive: "ask" }, steering: false,
};

export function story(more: Partial<Story> = {}): Story {
  return {
    run: {
      run_id: "run_1", event_id: "e1", agent: "office", runner_id: "plugin:acme/office/main", conversation_id: "c1",
      workspace_id: "default", status: "completed", attempt: 1, created_at: "2026-01-02T03:04:05.000Z",
      started_at: "2026-01-02T03:04:05.002Z", finished_at: "2026-01-02T03:04:06.000Z", error: null, usage: null, last_sequence: 9,
      model_calls: { calls: 1, unpriced: 0, tokens: 120, cost_usd: 0.0012 },
    },
    event: {
      event_id: "e1", event_type: "message.received", source: "api", seq: 1, created_at: "2026-01-02T03:04:05.000Z",
      event: { event_type: "message.received", input: { text: "book lunch" }, actor: { actor_type: "user", actor_id: "ann" } },
    },
    binding: {
      agent: "office", reason: "before_built_in", beside: ["assistant"], queue: "serial", deadline_s: 60, on_interrupt: "fail",
      delivery: null, steers: false, waited_ms: 2,
    },
    grant,
    runner: { runner_id: "plugin:acme/office/main", isolation: "landlock:7", name: "office", status: "ready", plugin: "acme/office", version: "1" },
    model_calls: [], deliveries: [], approvals: [], diagnostics: [], replay_of: null, replays: [], truncated: { event: false, model_calls: false, deliveries: false, approvals: false, diagnostics: false, replays: false },
    ...more,
  };
}

export function call(method: string, at: string, more: Partial<AuditRecord> = {}): AuditRecord {
  return {
    run_id: "run_1", attempt: 1, agent: "office", runner: "office", plugin: "acme/office", method, resource: null, scope: null,
    code: "ok", bytes_in: 1, bytes_out: 1, duration_us: 1_000, at: `2026-01-02T03:04:05.${at}Z`, ...more,
  };
}
