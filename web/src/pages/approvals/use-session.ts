// Who is signed in, and what that allows.
import { useQuery } from "@tanstack/react-query";
import { get } from "@/api/client";
import type { Session } from "@/api/types-overview";

/** Nobody is no error: then there is `null`. */
export async function readSession(signal?: AbortSignal): Promise<Session | null> {
  return (await get<Session | undefined>("/v1/session", { optional: true }, signal)) ?? null;
}

export function useSession() {
  return useQuery({ queryKey: ["session"], queryFn: ({ signal }) => readSession(signal), staleTime: 60_000, retry: false });
}

/** Whether approvals are shown to somebody; a sender sees them where it may answer. */
export function seesApprovals(session: Session | null | undefined): boolean {
  return session?.role !== "sender" || session.answers === true;
}
