// What waits for somebody's yes; one query for the inbox and for the count in the navigation.
import { useQuery } from "@tanstack/react-query";
import { get, type Page } from "@/api/client";
import type { Approval } from "@/api/types";

const EVERY_MS = 10_000;

export const PENDING_KEY = ["approvals", "waiting"] as const;

/** Silent where the role may not see approvals: then there is no data. */
export function usePendingApprovals() {
  const pending = useQuery({
    queryKey: PENDING_KEY,
    queryFn: ({ signal }) => get<Page<Approval>>("/v1/approvals", { status: "pending", limit: 100 }, signal),
    refetchInterval: EVERY_MS,
    retry: false,
  });
  return {
    query: pending,
    approvals: pending.data?.items ?? [],
    count: pending.data?.items.length ?? 0,
    /** There are more than were counted. */
    more: pending.data?.has_more ?? false,
  };
}
