// Shapes of the API that several pages use; the host describes them at /openapi.json.

export type RunStatus = "queued" | "running" | "completed" | "failed" | "cancelled" | "timeout";
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export interface Agent {
  name: string;
  runner_id: string;
  runner_available: boolean;
  built_in: boolean;
  events: string[];
  filters: JsonObject;
  scope: JsonObject;
  queue: "serial" | "parallel" | "steer" | "replace";
  on_interrupt: "fail" | "retry";
  deadline_s: number;
  delivery: string | null;
}

export interface RunError {
  code: string;
  message: string;
  retryable?: boolean;
}

export interface Run {
  run_id: string;
  agent: string;
  runner_id: string;
  status: RunStatus;
  attempt: number;
  conversation_id?: string | null;
  event_id: string;
  workspace_id: string;
  created_at: string;
  started_at?: string | null;
  finished_at?: string | null;
  error?: RunError | null;
  usage?: JsonObject | null;
  model_calls?: JsonObject | null;
  isolation?: string | null;
  last_sequence: number;
}

/** One result of a run, as it is kept. */
export interface RunResult {
  run_id: string;
  type: string;
  sequence?: number | null;
  runner_sequence?: number | null;
  created_at?: string | null;
  data?: JsonObject;
  usage?: JsonObject | null;
}

export interface Conversation {
  conversation_id: string;
  workspace_id: string;
  created_at: string;
  updated_at: string;
  events: number;
  items: number;
}

export interface ArtifactRef {
  artifact_id: string;
  name?: string | null;
  mime_type?: string | null;
  size_bytes?: number | null;
  sha256?: string | null;
  metadata?: JsonObject;
}

export interface Artifact extends ArtifactRef {
  mime_type: string;
  size_bytes: number;
  sha256: string;
  created_at: string;
  expires_at?: string | null;
  agent?: string | null;
  conversation_id?: string | null;
  run_id?: string | null;
}

export interface Actor {
  actor_type?: string | null;
  actor_id?: string | null;
  actor_name?: string | null;
  metadata?: JsonObject;
}

export type TranscriptRole = "user" | "assistant" | "tool" | "system" | "event";

/** One item of what was said in a conversation. */
export interface TranscriptItem {
  item_id: string;
  conversation_id: string;
  seq: number;
  role: TranscriptRole;
  text?: string | null;
  content?: string | null;
  segments?: Json[];
  artifacts?: ArtifactRef[];
  metadata?: JsonObject;
  actor?: Actor | null;
  event_id?: string | null;
  run_id?: string | null;
  thread_id?: string | null;
  created_at: string;
}

export interface HistoryPage {
  items: TranscriptItem[];
  next_cursor?: string | null;
  prev_cursor?: string | null;
  has_more: boolean;
}

export interface SearchHit extends TranscriptItem {
  score: number;
  snippet: string;
  highlights?: { start: number; end: number }[];
}

export interface EventView {
  event_id: string;
  event_type: string;
  source: string;
  seq: number;
  created_at: string;
  conversation_id?: string | null;
  conversation_seq?: number | null;
  run_id?: string | null;
  event?: Json;
  trigger?: Json;
  raw_ref?: JsonObject | null;
}

export type ApprovalStatus = "pending" | "allowed" | "denied" | "expired" | "cancelled";

/** What a call would change, as the host looked it up when it asked. */
export interface ApprovalSubject {
  records?: { id: string; title?: string; detail?: string; start_at?: string; end_at?: string }[];
  fields?: { name: string; value: string; before?: string }[];
  left_out?: number;
}

export interface Approval {
  approval_id: string;
  run_id: string;
  runner_id: string;
  agent: string;
  conversation_id?: string | null;
  action: string;
  actor?: Actor | null;
  target?: JsonObject;
  payload?: JsonObject;
  subject?: ApprovalSubject | null;
  nonce: string;
  status: ApprovalStatus;
  created_at: string;
  expires_at: string;
  answered_at?: string | null;
  answered_by?: string | null;
  outcome?: { status: string; error?: string | null; delivery_id?: string | null } | null;
}

export interface AuditRecord {
  at: string;
  method: string;
  code: string;
  plugin: string;
  runner: string;
  agent?: string | null;
  attempt?: number | null;
  authority?: string | null;
  resource?: string | null;
  run_id?: string | null;
  scope?: string | null;
  bytes_in: number;
  bytes_out: number;
  duration_us: number;
}

export interface Runner {
  name: string;
  plugin?: string | null;
  status?: string;
  pid?: number | null;
  restarts?: number;
  last_error?: string | null;
  last_failure?: { at: string; message: string } | null;
  isolation?: string | null;
  runners: JsonObject[];
}

export interface Tool {
  tool_name: string;
  description: string;
  parameters: JsonObject;
  risk: "read" | "write" | "destructive" | "external";
  source: string;
  timeout_s: number;
}

export interface ToolServer {
  name: string;
  kind: "mcp" | "module";
  status: "starting" | "ready" | "backing_off" | "stopped" | "failed";
  tools: number;
  restarts: number;
  warnings: string[];
  last_error?: string | null;
  isolation?: string | null;
  pid?: number | null;
  protocol_version?: string | null;
  server?: string | null;
}

export interface Model {
  name: string;
  model: string;
  provider: string;
  kind: "chat" | "embedding" | "rerank";
  has_price: boolean;
  context_window?: number | null;
  max_output_tokens?: number | null;
}

export const ENDED: ReadonlySet<RunStatus> = new Set(["completed", "failed", "cancelled", "timeout"]);
