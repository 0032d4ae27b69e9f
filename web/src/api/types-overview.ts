// Shapes of what the overview and the lists of facts read.
import type { Json } from "./types";

interface Figures {
  runs: number;
  completed: number;
  failed: number;
  cancelled: number;
  p50_ms: number | null;
  p95_ms: number | null;
  model_calls: number;
  input_tokens: number | null;
  output_tokens: number | null;
  cost_usd: number | null;
}

/** What ended in one step of time. */
export interface Step extends Figures {
  at: string;
}

export interface ModelFigures {
  name: string;
  provider: string | null;
  configured: boolean;
  calls: number;
  failed: number;
  input_tokens: number | null;
  output_tokens: number | null;
  cost_usd: number | null;
  last_ok_at: string | null;
  last_error: { code: string; at: string } | null;
}

export interface Overview {
  now_at: string;
  minutes: number;
  step_s: number;
  host: { version: string; started_at: string; memory_bytes: number | null; epoch: number };
  store: { kind: "sqlite" | "postgres"; ok: boolean; sync: string | null; size_bytes: number | null };
  queue: {
    queued: number | null;
    running: number | null;
    waiting_approvals: number | null;
    deliveries_waiting: number | null;
    deliveries_failed: number | null;
    deliveries_unknown: number | null;
  };
  series: Step[];
  models: ModelFigures[];
  totals: Figures;
}

export type StateScope = "conversation" | "actor" | "subject" | "runner" | "binding";

/** One value of the state, with whom it belongs to. */
export interface StateItem {
  scope: StateScope;
  agent: string | null;
  runner_id: string | null;
  conversation_id: string | null;
  actor: { type: string; id: string } | null;
  subject: { type: string; id: string } | null;
  key: string;
  value: Json;
  value_truncated: boolean;
  preview: string | null;
  size_bytes: number;
  version: number;
  updated_at: string;
  expires_at: string | null;
}

/** Who is signed in. */
export interface Session {
  name: string;
  role: "admin" | "sender" | "reader";
  answers?: boolean;
  /** Those a sender may reach; all where there is no list. */
  agents?: string[] | null;
}
