// Whether the host and its database respond: polled every few seconds, and at once after a failed request.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { hostUrl } from "@/api/base";
import { UNREACHABLE, parseError } from "@/api/client";

export type HostState = "well" | "away" | "no_database";

const EVERY_MS = 5_000;
const AGAIN_MS = 2_000;
const PATIENCE_MS = 4_000;
/** The host waits for the database, which may be restarting. */
const DATABASE_PATIENCE_MS = 10_000;

export function useHostState(): HostState {
  const queries = useQueryClient();
  const { data, isError, refetch } = useQuery({
    queryKey: ["healthz"],
    queryFn: ({ signal }) => ask(signal),
    refetchInterval: ({ state }) => (state.status === "error" || state.data === "no_database" ? AGAIN_MS : EVERY_MS),
    retry: false,
  });
  useEffect(() => {
    const onUnreachable = () => void refetch({ cancelRefetch: false });
    window.addEventListener(UNREACHABLE, onUnreachable);
    return () => window.removeEventListener(UNREACHABLE, onUnreachable);
  }, [refetch]);
  const state = isError ? "away" : (data ?? "well");
  // Failed queries are repeated once the host and the database respond again.
  const wasDown = useRef(false);
  useEffect(() => {
    if (wasDown.current && state === "well") void queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "healthz" });
    wasDown.current = state !== "well";
  }, [state, queries]);
  return state;
}

async function ask(signal: AbortSignal): Promise<HostState> {
  const fetched = (address: string, patience: number) =>
    fetch(hostUrl(address), { cache: "no-store", signal: AbortSignal.any([signal, AbortSignal.timeout(patience)]) });
  const health = await fetched("/healthz", PATIENCE_MS);
  if (!health.ok) throw new Error(`the host answers with ${health.status}`);
  const ready = await fetched("/readyz", DATABASE_PATIENCE_MS);
  return stateOf(ready.status, await ready.text());
}

/** The state that a response of `/readyz` reports. */
export function stateOf(status: number, body: string): HostState {
  return status === 503 && parseError(status, body).details["not_ready"] === "database" ? "no_database" : "well";
}
