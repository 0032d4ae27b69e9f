// Pending approvals; one query for the inbox and the count in the navigation.
import { useQuery } from "@tanstack/react-query";
import { get, type Page } from "@/api/client";
import type { Approval } from "@/api/types";

const EVERY_MS = 10_000;

export const PENDING_KEY = ["approvals", "waiting"] as const;

/** No data if the role may not see approvals. */
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
    /** There are more than counted. */
    more: pending.data?.has_more ?? false,
  };
}
