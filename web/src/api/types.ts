// The API's types under the names that the pages use; the structures are generated from docs/openapi.json.
import type {
  AgentDetail, ApprovalView, BindingTrial, DynamicFormItemSchema, Grant, Overview, Story,
} from "./generated/schemas";

export type {
  Agent, AgentDetail, AgentRunnerManifest as Manifest, AgentRunnerPermissions as Permissions, ApprovalSubject,
  AgentRunResult as RunResult, ApprovalView as Approval, ArtifactView as Artifact, AuditView as AuditRecord,
  BindingTrial, Conversation, Delivery, Event as EventView, EventAnswer, Grant, I18nObject as I18nText, Interaction,
  InteractionAction, InteractionField, InteractionRequest, Model,
  ModelCall, ModelFigures, Overview, Runner, RunnerProcess, RunStatus, RunView as Run, SearchHit, Session, StateItem,
  StateScope, Story, Tool, ToolServer, TranscriptItem,
} from "./generated/schemas";
export type { Json, JsonObject } from "./json";
export { ENDED, FAILED } from "./run-status";

export type ApprovalStatus = ApprovalView["status"];
export type ApprovalMode = AgentDetail["policy"]["actions"][string];
export type Candidate = BindingTrial["candidates"][number];
export type Diagnostic = Story["diagnostics"][number];
export type Reach = Grant["history"]["reach"];
export type Step = Overview["series"][number];
export type StoryApproval = Story["approvals"][number];

/** A setting of a runner; runners may add bounds, which the protocol does not name. */
export type FormItem = DynamicFormItemSchema & { minimum?: number; maximum?: number };
