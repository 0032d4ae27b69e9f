// The session and its permissions.
import { useQuery } from "@tanstack/react-query";
import { get } from "@/api/client";
import type { Session } from "@/api/types";

/** `null` when signed out. */
export async function readSession(signal?: AbortSignal): Promise<Session | null> {
  return (await get<Session | undefined>("/v1/session", { optional: true }, signal)) ?? null;
}

export function useSession() {
  return useQuery({ queryKey: ["session"], queryFn: ({ signal }) => readSession(signal), staleTime: 60_000, retry: false });
}

/** Whether the session may see approvals; a sender only if it may answer. */
export function seesApprovals(session: Session | null | undefined): boolean {
  return session?.role !== "sender" || session.answers === true;
}
