// Who is signed in, and what that allows.
import { useQuery } from "@tanstack/react-query";
import { get } from "@/api/client";
import type { Session } from "@/api/types-overview";

export function useSession() {
  return useQuery({ queryKey: ["session"], queryFn: ({ signal }) => get<Session>("/v1/session", {}, signal), staleTime: 60_000, retry: false });
}
