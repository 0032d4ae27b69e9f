// What a page shows of a conversation, and what its reader may see.
import type { Entry } from "./entry";
import type { LiveRun } from "./live-run";

export interface ThreadView {
  entries: Entry[];
  /** The first page is loading. */
  loading: boolean;
  loadingOlder: boolean;
  hasOlder: boolean;
  error: unknown;
  /** Active runs. */
  active: LiveRun[];
  /** The agents of the conversation, that of the newest message first. */
  recentAgents: string[];
  /** Increases with every change. */
  version: number;
}

/** What the session may do here. */
export interface Rights {
  /** Readers may not open streams of runs; they see stored history. */
  follows: boolean;
  showsApprovals: boolean;
}
