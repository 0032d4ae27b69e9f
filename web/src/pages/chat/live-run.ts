// One live run, followed through `@ag-ui/client` across reconnects and interrupts.
import "./no-eval";
import { HttpAgent, type AgentSubscriber } from "@ag-ui/client";
import type { BaseEvent, Interrupt, Message, ResumeEntry } from "@ag-ui/core";
import { hostUrl } from "@/api/base";
import { ApiError, path, WRITE_HEADERS } from "@/api/client";
import { newId } from "@/api/new-id";
import type { Approval, JsonObject } from "@/api/types";
import type { ApprovalEntry, Delivery, Entry, FileRef, UserEntry } from "./entry";
import { isObject, textOr } from "./entry";
import { entryOfCustom, errorOf, type Failure } from "./live-events";
import { withExtras, type Extra } from "./extras";
import { contentOf } from "./outgoing";
import { entryOfInterrupt, withQuestions } from "./questions";
import { watchedFetch } from "./watched";
import { entriesOfMessages } from "./from-messages";

export type LiveStatus = "sending" | "queued" | "running" | "waiting" | "reconnecting" | "done" | "failed" | "cancelled";

export interface LiveRunOptions {
  agent: string;
  threadId: string;
  /** The id of the event; the same one again attaches to the same run. */
  eventId: string;
  hostRunId?: string;
  onChange: (run: LiveRun) => void;
  /** The message was passed to a running run. */
  onSteered: (run: LiveRun, hostRunId: string) => boolean;
}

/** Prefix of event ids made by this interface. */
export const OWN = "web-";
const RETRY_MS = [300, 1_000, 2_000, 4_000, 8_000];
const OVER: ReadonlySet<LiveStatus> = new Set(["done", "failed", "cancelled"]);

export class LiveRun {
  readonly eventId: string;
  readonly agent: string;
  hostRunId: string | null;
  status: LiveStatus = "sending";
  user: UserEntry | null = null;
  failure: Failure | null = null;
  retold = false;
  #options: LiveRunOptions;
  #http: HttpAgent;
  #messages: readonly Readonly<Message>[] = [];
  #extras: Extra[] = [];
  /** All its approvals by id, answered ones too. */
  #questions = new Map<string, ApprovalEntry>();
  /** What was entered for questions, by approval. */
  #values = new Map<string, JsonObject>();
  #seen = new Map<string, string>();
  /** For the runner instead of a message: an answer to a question, or a pressed button. */
  #props: object | null = null;
  #ended = false;
  #closed = false;
  #begun = false;

  constructor(options: LiveRunOptions) {
    this.#options = options;
    this.eventId = options.eventId;
    this.agent = options.agent;
    this.hostRunId = options.hostRunId ?? null;
    this.#http = this.#newAgent();
  }

  get over(): boolean {
    return OVER.has(this.status);
  }

  /** Sends a message and follows its run. */
  send(text: string, files: FileRef[]): void {
    const at = new Date().toISOString();
    const about = { eventId: this.eventId, at, from: null, delivery: "sending" as Delivery };
    this.user = { kind: "user", id: this.eventId, runId: null, text, files, ...about };
    this.#http.addMessage({ id: `${this.eventId}.message`, role: "user", content: contentOf(text, files) } as Message);
    void this.#follow();
  }

  /** Sends an answer to a question or a pressed button, and follows its run; sending it again changes nothing. */
  act(props: object): void {
    this.#props = props;
    void this.#follow();
  }

  /** Follows an existing run: by its event id if this interface started it, else through the thread. */
  attach(): void {
    this.#begun = true;
    this.status = "running";
    void this.#follow();
  }

  /** Replays a failed run: its partial output is stored nowhere else. */
  retell(): void {
    this.retold = true;
    this.attach();
  }

  /** Adds a message that the user sent during the run. */
  addUser(entry: UserEntry): void {
    this.#extras.push({ after: this.#messages.at(-1)?.id ?? null, entry });
    this.#changed();
  }

  /** A run waits until all its approvals are answered. */
  decide(approvalId: string, approved: boolean, values: JsonObject | null = null): void {
    if (values) this.#values.set(approvalId, values);
    this.#answer(approvalId, approved ? "allowed" : "denied");
    if (this.#open().length === 0) void this.#resume();
    this.#changed();
  }

  /** Applies answers given elsewhere; the stream is reopened when none is pending. */
  settled(approvals: Approval[]): void {
    for (const approval of approvals) {
      if (approval.status !== "pending") this.#answer(approval.approval_id, approval.status);
    }
    if (this.status !== "waiting" || this.#open().length > 0) return;
    this.#http = this.#newAgent();
    this.attach();
    this.#changed();
  }

  /** The stream is dead: it is reopened. */
  reopen(): void {
    this.#http.abortRun();
  }

  close(): void {
    this.#closed = true;
    this.#http.abortRun();
  }

  entries(): Entry[] {
    const said = entriesOfMessages(this.#messages, { hostRunId: this.hostRunId, live: !this.over, seenAt: (id) => this.#seen.get(id) ?? null });
    const entries: Entry[] = this.user ? [{ ...this.user, runId: this.hostRunId }] : [];
    const first = this.#extras.filter((extra) => extra.after === null).map((extra) => extra.entry);
    entries.push(...first, ...withQuestions(withExtras(said, this.#extras, this.#messages), [...this.#questions.values()]));
    const about = { id: `${this.hostRunId ?? this.eventId}.end`, runId: this.hostRunId };
    if (this.status === "cancelled") entries.push({ kind: "notice", ...about, notice: "cancelled" });
    if (this.failure) entries.push({ kind: "error", ...about, agent: this.agent, ...this.failure });
    return entries;
  }

  /** Runs started by this interface are found by their event id, others through the thread. */
  #newAgent(): HttpAgent {
    const url = this.#address(this.eventId.startsWith(OWN) ? "/v1/agui/{}" : "/v1/agui/agent/{}/connect");
    return new HttpAgent({ url, headers: { ...WRITE_HEADERS }, threadId: this.#options.threadId, fetch: watchedFetch });
  }

  /** Absolute, because the client parses it. */
  #address(template: string): string {
    return new URL(hostUrl(path(template, this.agent)), window.location.origin).href;
  }

  #open(): ApprovalEntry[] {
    return [...this.#questions.values()].filter((question) => question.decision === null);
  }

  #answer(approvalId: string, decision: ApprovalEntry["decision"]): void {
    const question = this.#questions.get(approvalId);
    if (question?.decision !== null) return;
    this.#questions.set(approvalId, { ...question, decision });
    const held = this.#open().length > 0;
    for (const [id, one] of this.#questions) this.#questions.set(id, { ...one, held: held && one.interruptId !== null && one.decision !== null });
  }

  async #resume(): Promise<void> {
    const waiting = new Set(this.#http.pendingInterrupts.map((interrupt) => interrupt.id));
    const asked = [...this.#questions.values()].filter((question) => question.interruptId && waiting.has(question.interruptId));
    const resume: ResumeEntry[] = asked.map((question) => ({
      interruptId: question.interruptId ?? "",
      status: "resolved",
      payload: { approved: question.decision === "allowed", ...(this.#values.has(question.id) ? { values: this.#values.get(question.id) } : {}) },
    }));
    this.status = "running";
    this.#changed();
    // Only this endpoint accepts answers, also for runs started elsewhere.
    this.#http.url = this.#address("/v1/agui/{}");
    await this.#once(newId(), resume);
    if (this.#ended || this.#closed) return;
    // However this stream ended, the run's own stream is authoritative.
    this.#http = this.#newAgent();
    await this.#follow();
  }

  async #follow(): Promise<void> {
    for (let failures = 0; !this.#closed; failures += 1) {
      await this.#once(this.eventId);
      if (this.#ended || this.#closed) return;
      if (this.#begun) this.status = "reconnecting";
      this.#changed();
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]));
    }
  }

  async #once(runId: string, resume?: ResumeEntry[]): Promise<void> {
    this.#ended = false;
    try {
      const forwarded = this.#props ? { forwardedProps: this.#props } : {};
      await this.#http.runAgent(resume ? { runId, resume } : { runId, ...forwarded }, this.#subscriber());
    } catch (error) {
      if (!this.#ended && !this.#closed) this.#refused(error);
    }
  }

  #subscriber(): AgentSubscriber {
    return {
      onEvent: ({ event }) => this.#take(event),
      onMessagesChanged: ({ messages }) => {
        this.#messages = messages;
        const newest = messages.at(-1)?.id;
        if (newest && !this.#seen.has(newest)) this.#seen.set(newest, new Date().toISOString());
        this.#changed();
      },
    };
  }

  #take(event: BaseEvent & Record<string, unknown>): void {
    if (event.type === "RUN_STARTED") this.#started(event);
    else if (event.type === "RUN_FINISHED") this.#finished(event["outcome"]);
    else if (event.type === "RUN_ERROR") this.#end("failed", errorOf(event));
    else if (event.type === "CUSTOM") this.#custom(event);
    else if (this.status !== "running") {
      this.status = "running";
      this.#settleUser(null);
    }
  }

  #started(event: Record<string, unknown>): void {
    const about = isObject(event["metadata"]) && isObject(event["metadata"]["greenroom"]) ? event["metadata"]["greenroom"] : {};
    const hostRunId = textOr(about["run_id"], null);
    if (!this.#begun && hostRunId && this.#options.onSteered(this, hostRunId)) {
      this.close();
      return;
    }
    this.hostRunId = hostRunId ?? this.hostRunId;
    this.status = this.#begun ? "running" : "queued";
    this.#begun = true;
    this.#settleUser(this.status === "queued" ? "queued" : null);
    this.#changed();
  }

  #finished(outcome: unknown): void {
    const type = isObject(outcome) ? outcome["type"] : "success";
    if (type === "interrupt") {
      this.#ended = true;
      this.status = "waiting";
      for (const interrupt of (outcome as unknown as { interrupts: Interrupt[] }).interrupts) {
        const question = entryOfInterrupt(interrupt, { runId: this.hostRunId, agent: this.agent });
        this.#questions.set(question.id, question);
      }
      this.#settleUser(null);
      this.#changed();
    } else {
      this.#end(type === "cancelled" ? "cancelled" : "done", null);
    }
  }

  #custom(event: Record<string, unknown>): void {
    const entry = entryOfCustom(textOr(event["name"], ""), event["value"], `${this.hostRunId}.extra${this.#extras.length}`, this.hostRunId);
    // A reopened stream repeats its events.
    if (entry && !this.#extras.some((extra) => JSON.stringify({ ...extra.entry, id: "" }) === JSON.stringify({ ...entry, id: "" }))) {
      this.#extras.push({ after: this.#messages.at(-1)?.id ?? "", entry });
      this.#changed();
    }
  }

  #end(status: LiveStatus, failure: Failure | null): void {
    // The host is stopping or cannot read now and asks to retry: the run has not ended.
    if (failure?.comeBack) return;
    this.#ended = true;
    this.status = status;
    this.failure = failure;
    this.#settleUser(failure && !this.#begun ? "failed" : null);
    this.#changed();
  }

  #refused(error: unknown): void {
    const refusal = error instanceof ApiError ? error : null;
    if (refusal && (refusal.status === 0 || refusal.status >= 500) && this.#begun) return;
    const message = error instanceof Error ? error.message : String(error);
    if (!refusal && this.#begun) return;
    this.#end("failed", { code: refusal?.code ?? "unreachable", message, comeBack: false });
  }

  #settleUser(delivery: Delivery): void {
    if (this.user) this.user = { ...this.user, delivery };
  }

  #changed(): void {
    this.#options.onChange(this);
  }
}
