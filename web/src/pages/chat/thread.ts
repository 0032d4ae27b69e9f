// One conversation: stored history, read backwards in pages, and the live runs.
import { ApiError, get, path, type Page } from "@/api/client";
import { newId } from "@/api/new-id";
import { ENDED, type Approval, type Artifact, type JsonObject, type Run, type TranscriptItem } from "@/api/types";
import type { FileRef } from "./entry";
import { LiveRun, OWN } from "./live-run";
import { HistoryEntries, merge } from "./merge";
import type { Rights, ThreadView } from "./thread-view";

export type { Rights, ThreadView };

const PAGE = 100;
const RUNS = 100;
/** Failed runs that are shown again when a conversation is opened. */
const FAILURES_SHOWN = 5;
/** Maximum rate of updates of growing text. */
const SHOW_EVERY_MS = 50;

export class Thread {
  readonly id: string;
  #open = false;
  #isNew: boolean;
  #rights: Rights;
  #items: TranscriptItem[] = [];
  #runs = new Map<string, Run>();
  #approvals: Approval[] = [];
  #artifacts: Artifact[] = [];
  #live: LiveRun[] = [];
  #history = new HistoryEntries();
  #cursor: string | null = null;
  #loading: boolean;
  #loadingOlder = false;
  #hasOlder = false;
  /** The session may not read lists; only followed runs are shown. */
  #isBlind = false;
  #error: unknown = null;
  #version = 0;
  #view: ThreadView | null = null;
  #listeners = new Set<() => void>();
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(id: string, isNew: boolean, rights: Rights) {
    this.id = id;
    this.#rights = rights;
    this.#isNew = isNew;
    this.#loading = !isNew;
  }

  /** Starts loading; a closed thread can be opened again. */
  open(): void {
    this.#open = true;
    if (!this.#isNew) void this.load();
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  view = (): ThreadView => {
    this.#view ??= this.#look();
    return this.#view;
  };

  async load(): Promise<void> {
    this.#loading = this.#items.length === 0;
    this.#error = null;
    this.#changed();
    try {
      const [page, runs] = await Promise.all([this.#page(null), this.#recentRuns(), this.#readBeside()]);
      this.#items = page.items;
      this.#cursor = page.next_cursor ?? null;
      this.#hasOlder = page.has_more;
      this.#remember(runs);
      this.#retell(runs);
    } catch (error) {
      // A conversation without messages is not stored; one of other users is not visible.
      this.#isBlind = error instanceof ApiError && error.status === 403;
      if (!this.#isBlind && !(error instanceof ApiError && error.status === 404)) this.#error = error;
    }
    this.#loading = false;
    this.#changed();
  }

  async loadOlder(): Promise<void> {
    if (!this.#hasOlder || this.#loadingOlder || !this.#cursor) return;
    this.#loadingOlder = true;
    this.#error = null;
    this.#changed();
    try {
      const page = await this.#page(this.#cursor);
      this.#items = [...page.items, ...this.#items];
      this.#cursor = page.next_cursor ?? null;
      this.#hasOlder = page.has_more;
    } catch (error) {
      this.#error = error;
    }
    this.#loadingOlder = false;
    // At once: scrolling at the old beginning would request the next page already.
    this.#show();
  }

  /** Texts of cards come from the host: reloaded in another language. */
  async reword(): Promise<void> {
    this.#history = new HistoryEntries();
    this.#items = [];
    await this.load();
  }

  /** Loads changes from other tabs, surfaces and the approvals inbox. */
  async refresh(): Promise<void> {
    if (this.#loading || this.#isBlind) return;
    // Nothing is loaded yet: start from the first page, which has the cursor of older ones.
    if (this.#error && this.#items.length === 0) return this.load();
    try {
      const runs = await this.#recentRuns();
      const unknown = runs.filter((run) => this.#isNews(run));
      if (unknown.length > 0) await this.#takeNewest();
      this.#reopenDead(runs);
      this.#remember(runs);
      for (const run of this.#live) if (run.status === "waiting" && this.#rights.showsApprovals) await this.#lookForAnswer(run);
    } catch (error) {
      // The next refresh may succeed; the current entries stay.
      this.#isBlind = error instanceof ApiError && error.status === 403;
    }
  }

  send(agent: string, text: string, files: FileRef[]): void {
    this.#isNew = false;
    this.#begin(agent, (run) => run.send(text, files));
  }

  /** Follows the run that gets the answer to a question of this run. */
  answered(runId: string, answer: JsonObject): void {
    const agent = this.#live.find((run) => run.hostRunId === runId)?.agent ?? this.#runs.get(runId)?.agent;
    if (!agent) return void this.refresh();
    this.#begin(agent, (run) => run.act({ interaction: { ...answer, run_id: runId } }));
  }

  /** Presses a button of a card: an event of its own, without a message. */
  press(agent: string, press: object): void {
    this.#begin(agent, (run) => run.act(press));
  }

  #begin(agent: string, start: (run: LiveRun) => void): void {
    const run = this.#newRun(agent, OWN + newId());
    this.#live.push(run);
    start(run);
    this.#changed();
  }

  close(): void {
    this.#open = false;
    for (const run of this.#live) run.close();
    this.#live = [];
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  async #page(cursor: string | null): Promise<Page<TranscriptItem>> {
    return get<Page<TranscriptItem>>(path("/v1/conversations/{}/history", this.id), { limit: PAGE, cursor });
  }

  async #recentRuns(): Promise<Run[]> {
    return (await get<Page<Run>>("/v1/runs", { conversation_id: this.id, limit: RUNS })).items;
  }

  /** Runs, approvals and artifacts of the conversation, as far as the role may see them. */
  async #readBeside(): Promise<void> {
    const none = () => ({ items: [] });
    const [approvals, artifacts] = await Promise.all([
      this.#rights.showsApprovals ? get<{ items: Approval[] }>("/v1/approvals", { limit: RUNS }).catch(none) : none(),
      get<{ items: Artifact[] }>("/v1/artifacts", { conversation_id: this.id, limit: RUNS }).catch(none),
    ]);
    this.#approvals = approvals.items.filter((approval) => approval.conversation_id === this.id);
    this.#artifacts = artifacts.items;
  }

  async #takeNewest(): Promise<void> {
    const page = await this.#page(null);
    const known = new Set(this.#items.map((item) => item.item_id));
    this.#items = [...this.#items, ...page.items.filter((item) => !known.has(item.item_id))];
  }

  /** Follows active runs, oldest first. */
  #remember(runs: Run[]): void {
    if (!this.#open) return;
    this.#runs = new Map([...this.#runs, ...runs.map((run): [string, Run] => [run.run_id, run])]);
    for (const run of [...runs].reverse()) {
      if (!this.#rights.follows || ENDED.has(run.status) || this.#follows(run)) continue;
      const live = this.#newRun(run.agent, run.event_id, run.run_id);
      this.#live.push(live);
      live.attach();
    }
    this.#changed();
  }

  #retell(runs: Run[]): void {
    if (!this.#open || !this.#rights.follows) return;
    const broken = runs.filter((run) => ENDED.has(run.status) && run.status !== "completed" && run.event_id.startsWith(OWN));
    for (const run of broken.slice(0, FAILURES_SHOWN)) {
      if (this.#follows(run)) continue;
      const live = this.#newRun(run.agent, run.event_id, run.run_id);
      this.#live.unshift(live);
      live.retell();
    }
  }

  /** A run that had ended at the last refresh too while its stream is open: the stream is dead. */
  #reopenDead(runs: Run[]): void {
    for (const run of runs) {
      const before = this.#runs.get(run.run_id);
      const live = this.#live.find((one) => one.hostRunId === run.run_id);
      if (before && ENDED.has(before.status) && live && !live.over && live.status !== "waiting") live.reopen();
    }
  }

  /** Whether a run that is not followed has added items since the last refresh. */
  #isNews(run: Run): boolean {
    const before = this.#runs.get(run.run_id);
    return !this.#follows(run) && (before === undefined || (!this.#rights.follows && before.status !== run.status));
  }

  #follows(run: Run): boolean {
    return this.#live.some((live) => live.hostRunId === run.run_id || live.eventId === run.event_id);
  }

  #newRun(agent: string, eventId: string, hostRunId?: string): LiveRun {
    return new LiveRun({
      agent,
      threadId: this.id,
      eventId,
      ...(hostRunId ? { hostRunId } : {}),
      onChange: () => this.#changed(),
      onSteered: (run, into) => this.#steered(run, into),
    });
  }

  /** A steered message belongs to the run it was passed to, which is followed already. */
  #steered(run: LiveRun, into: string): boolean {
    const other = this.#live.find((live) => live !== run && live.hostRunId === into && !live.over);
    if (!other || !run.user) return false;
    this.#live = this.#live.filter((live) => live !== run);
    other.addUser({ ...run.user, runId: into, delivery: "steered" });
    return true;
  }

  async #lookForAnswer(run: LiveRun): Promise<void> {
    const asked = await get<Page<Approval>>("/v1/approvals", { run_id: run.hostRunId, limit: RUNS });
    run.settled(asked.items);
  }

  #look(): ThreadView {
    const history = this.#history.of({ items: this.#items, runs: this.#runs, approvals: this.#approvals, artifacts: this.#artifacts });
    const live = this.#live.map((run) => ({ hostRunId: run.hostRunId, eventId: run.eventId, entries: run.entries() }));
    return {
      entries: merge(history, live),
      loading: this.#loading,
      loadingOlder: this.#loadingOlder,
      hasOlder: this.#hasOlder,
      error: this.#error,
      active: this.#live.filter((run) => !run.over && !run.retold),
      recentAgents: this.#recentAgents(),
      version: this.#version,
    };
  }

  /** The agents of the conversation, that of the newest message first. */
  #recentAgents(): string[] {
    const live = this.#live.filter((run) => !run.retold).reverse();
    const stored = [...this.#runs.values()].sort((one, other) => (one.created_at < other.created_at ? 1 : -1));
    return [...new Set([...live, ...stored].map((run) => run.agent))];
  }

  #changed(): void {
    if (!this.#open) return;
    this.#timer ??= setTimeout(() => this.#show(), SHOW_EVERY_MS);
  }

  #show(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (!this.#open) return;
    this.#version += 1;
    this.#view = null;
    for (const listener of this.#listeners) listener();
  }
}
