// What the API tells about a run beside the run itself: its story, and what a replay answers.

import type { EventView, Json, JsonObject, Run } from "./types";

export interface ModelTotals {
  calls: number;
  unpriced: number;
  tokens: number | null;
  cost_usd: number | null;
}

export type Reach = "none" | "conversation" | "workspace";
export type Approving = "never" | "ask" | "always";
export type Risk = "read" | "write" | "destructive" | "external";

/** What a run may do, frozen with it. */
export interface Grant {
  hash?: string;
  agent: string;
  runner_id: string;
  config: JsonObject | null;
  history: { reach: Reach; operations: string[] };
  events: { reach: Reach; operations: string[] };
  artifacts: { reach: Reach; operations: string[] };
  state: string[];
  storage: string[];
  actions: Record<string, Approving>;
  models: { names: string[]; operations: string[] };
  tools: { names: string[]; operations: string[] };
  knowledge: { names: string[]; operations: string[] };
  methods: string[];
  skills: string[];
  risks: Partial<Record<Risk, Approving>>;
  steering: boolean;
}

export interface StoryBinding {
  agent: string;
  reason: string | null;
  beside: string[];
  queue: string;
  deadline_s: number;
  on_interrupt: string;
  delivery: string | null;
  steers: boolean;
  waited_ms: number | null;
}

export interface StoryRunner {
  runner_id: string;
  isolation: string | null;
  name: string | null;
  status: string | null;
  plugin: string | null;
  version: string | null;
}

export interface ModelCall {
  model: string;
  method: string;
  at: string;
  duration_ms: number | null;
  input_tokens: number | null;
  output_tokens: number | null;
  cached_input_tokens: number | null;
  tokens: number | null;
  cost_usd: number | null;
  /** The finish reason, an error code, `cancelled` or `interrupted`. */
  outcome: string | null;
  failed: boolean;
}

export interface Delivery {
  delivery_id: string;
  surface: string;
  run_id: string;
  conversation_id: string | null;
  sequence: number | null;
  status: string;
  attempts: number;
  error: string | null;
  created_at: string;
  updated_at: string;
  /** While it waits to be tried again. */
  next_attempt_at: string | null;
  /** What is sent; with one delivery only. */
  payload?: Json;
}

export interface StoryApproval {
  approval_id: string;
  action: string;
  status: string;
  answered_by?: string | null;
  created_at: string;
  answered_at?: string | null;
}

export interface Diagnostic {
  kind: string;
  message: string;
  created_at: string;
}

export interface Story {
  run: Run;
  event: EventView | null;
  binding: StoryBinding;
  grant: Grant | null;
  runner: StoryRunner;
  model_calls: ModelCall[];
  deliveries: Delivery[];
  approvals: StoryApproval[];
  diagnostics: Diagnostic[];
  replay_of: { event_id: string; run_id: string | null } | null;
  replays: { event_id: string; run_id: string | null; created_at: string }[];
  truncated: Record<string, boolean>;
}

export interface Accepted {
  event_id: string;
  run_id: string | null;
  status: string;
}
