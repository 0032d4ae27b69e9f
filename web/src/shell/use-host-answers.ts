// Whether the host answers: asked every few seconds, and at once when a request got no answer.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { UNREACHABLE } from "@/api/client";

const EVERY_MS = 5_000;
const AGAIN_MS = 2_000;
const PATIENCE_MS = 4_000;

export function useHostAnswers(): boolean {
  const queries = useQueryClient();
  const { isError, refetch } = useQuery({
    queryKey: ["healthz"],
    queryFn: ({ signal }) => ask(signal),
    refetchInterval: (query) => (query.state.status === "error" ? AGAIN_MS : EVERY_MS),
    retry: false,
  });
  useEffect(() => {
    const onUnreachable = () => void refetch({ cancelRefetch: false });
    window.addEventListener(UNREACHABLE, onUnreachable);
    return () => window.removeEventListener(UNREACHABLE, onUnreachable);
  }, [refetch]);
  // What was asked for meanwhile, and what went wrong with it, is asked again once the host is back.
  const wasAway = useRef(false);
  useEffect(() => {
    if (wasAway.current && !isError) void queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "healthz" });
    wasAway.current = isError;
  }, [isError, queries]);
  return !isError;
}

async function ask(signal: AbortSignal): Promise<true> {
  const response = await fetch("/healthz", { cache: "no-store", signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]) });
  if (!response.ok) throw new Error(`the host answers with ${response.status}`);
  return true;
}
