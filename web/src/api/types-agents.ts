// What the API tells about one agent, its runner, and which agent would take an event.

import type { Agent, Json, JsonObject, Runner } from "./types";
import type { Approving, Grant, Reach, Risk } from "./types-runs";

/** A text in several languages, or one for all. */
export type I18nText = string | Record<string, string | null>;

export interface FormItem {
  name: string;
  label: I18nText;
  description?: I18nText | null;
  type: string;
  required?: boolean;
  default?: Json;
  options?: { name: string; label: I18nText }[] | null;
  minimum?: number;
  maximum?: number;
}

export interface Permissions {
  models?: string[];
  tools?: string[];
  knowledge_bases?: string[];
  history?: string[];
  events?: string[];
  artifacts?: string[];
  storage?: string[];
  files?: string[];
  platform_api?: string[];
}

export interface Manifest {
  id: string;
  name: string;
  label: I18nText;
  description?: I18nText | null;
  protocol_version?: string;
  capabilities?: Record<string, boolean>;
  permissions?: Permissions;
  config_schema?: FormItem[];
}

/** What the agent's grant says, defaults filled in; patterns as written. */
export interface Policy {
  models: string[];
  tools: string[];
  knowledge: string[];
  history: Reach;
  event_log: Reach;
  artifacts: Reach;
  state: string[];
  storage: string[];
  actions: Record<string, Approving>;
  files: string[];
  skills: string[];
  modules: string[];
  risks: Partial<Record<Risk, Approving>>;
}

export interface RunnerProcess extends Omit<Runner, "runners"> {
  version?: string | null;
  runs_in_flight?: number;
  retry_in_ms?: number | null;
  warnings?: string[];
}

export interface RunnerView extends RunnerProcess {
  runners: Manifest[];
}

export interface AgentView extends Agent {
  budget?: { run_usd: number | null; day_usd: number | null };
  config: JsonObject;
  policy: Policy;
  grant: Grant | null;
  manifest: Manifest | null;
  runner: RunnerProcess | null;
}

export interface Candidate {
  agent: string;
  built_in: boolean;
  matches: boolean;
  chosen: boolean;
  why: string[];
}

export interface Tried {
  agent: string | null;
  outcome: "run" | "unbound" | "tie" | "unknown_agent";
  reason: string | null;
  tie: string[];
  candidates: Candidate[];
  binding: { queue: string; deadline_s: number; on_interrupt: string; delivery: string | null } | null;
  grant: Grant | null;
  runner_available: boolean;
}
