// The results of a run as they arrive: one stream, resumed after a break, folded as it is read.
import { useCallback, useEffect, useRef, useState } from "react";
import { path } from "@/api/client";
import { follow } from "@/api/sse";
import type { RunResult } from "@/api/types";
import { parseVisible } from "@/api/visible";
import { Fold } from "./logic/fold";

/** Results read before asking to continue. */
export const RESULTS_AT_ONCE = 50_000;
/** Few results are rendered at once, many at intervals. */
const DRAW_EVERY_MS = 60;
const DRAW_FLOOD_EVERY_MS = 300;
const FLOOD = 1_000;

export interface Results {
  fold: Fold;
  /** All results read, in order. */
  all: RunResult[];
  /** Changes whenever there is more. */
  version: number;
  state: "reading" | "reconnecting" | "paused" | "ended" | "failed";
  error: unknown;
  readOn: () => void;
}

interface Held {
  runId: string;
  fold: Fold;
  all: RunResult[];
}

/** `ended`: the run has ended, so a closed stream is complete. */
export function useResults(runId: string, ended: boolean): Results {
  const held = useRef<Held>({ runId, fold: new Fold(), all: [] });
  const isEnded = useRef(ended);
  const [version, setVersion] = useState(0);
  const [state, setState] = useState<Results["state"]>("reading");
  const [error, setError] = useState<unknown>(null);
  const [limit, setLimit] = useState(RESULTS_AT_ONCE);
  useEffect(() => {
    isEnded.current = ended;
  }, [ended]);

  useEffect(() => {
    if (held.current.runId !== runId) held.current = { runId, fold: new Fold(), all: [] };
    const { fold, all } = held.current;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let drawn = all.length;
    const draw = () => {
      timer = undefined;
      drawn = all.length;
      setVersion((now) => now + 1);
    };
    const finish = (next: Results["state"]) => {
      if (timer !== undefined) clearTimeout(timer);
      draw();
      setState(next);
    };
    setState("reading");
    follow({
      path: path("/v1/runs/{}/results", runId),
      after: fold.lastSequence > 0 ? String(fold.lastSequence) : null,
      signal: stop.signal,
      isLast: (frame) => frame.event === "run.completed" || frame.event === "run.failed",
      onConnection: (open) => {
        if (open) return setState("reading");
        if (!isEnded.current) return setState("reconnecting");
        stop.abort();
        finish("ended");
      },
      onFrame: (frame) => {
        if (stop.signal.aborted) return;
        const result = parseVisible(frame.data) as RunResult;
        if ((result.sequence ?? 0) > fold.lastSequence) all.push(result);
        fold.push(result);
        timer ??= setTimeout(draw, all.length - drawn > FLOOD ? DRAW_FLOOD_EVERY_MS : DRAW_EVERY_MS);
        if (all.length >= limit) {
          stop.abort();
          finish("paused");
        }
      },
    }).then(
      () => !stop.signal.aborted && finish("ended"),
      (cause: unknown) => {
        if (stop.signal.aborted) return;
        setError(cause);
        finish("failed");
      },
    );
    return () => {
      stop.abort();
      if (timer !== undefined) clearTimeout(timer);
    };
  }, [runId, limit]);

  const readOn = useCallback(() => setLimit((now) => now + RESULTS_AT_ONCE), []);
  const { fold, all } = held.current;
  return { fold, all, version, state, error, readOn };
}
