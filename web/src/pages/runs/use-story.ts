// The story of a run and its calls to the host, refreshed while it runs.
import { useQuery } from "@tanstack/react-query";
import { get, path, type Page } from "@/api/client";
import { ENDED, type Approval, type AuditRecord, type Story } from "@/api/types";

const EVERY_MS = 1_500;
/** A delivery or an approval may still change after the end. */
const AFTER_END_MS = 4_000;
const AUDIT_PAGE = 200;
const AUDIT_PAGES = 5;
/** Audit records of reads are written with a delay. */
const RECORDED_WITHIN_MS = 5_000;

export function useStory(runId: string) {
  return useQuery({
    queryKey: ["run", runId, "story"],
    queryFn: ({ signal }) => get<Story>(path("/v1/runs/{}/story", runId), undefined, signal),
    refetchInterval: (query) => {
      const story = query.state.data;
      if (story === undefined) return false;
      if (!ENDED.has(story.run.status)) return EVERY_MS;
      const isWaiting = story.deliveries.some((one) => ["pending", "claimed"].includes(one.status)) || story.approvals.some((one) => one.status === "pending");
      return isWaiting ? AFTER_END_MS : false;
    },
  });
}

export interface Calls {
  records: AuditRecord[];
  /** Older calls were left out. */
  isCut: boolean;
}

export function useCalls(runId: string, story: Story | undefined) {
  const run = story?.run;
  const isOpen = run !== undefined && !ENDED.has(run.status);
  return useQuery({
    queryKey: ["run", runId, "calls", run?.status],
    queryFn: async ({ signal }): Promise<Calls> => {
      const records: AuditRecord[] = [];
      let cursor: string | null = null;
      for (let page = 0; page < AUDIT_PAGES; page += 1) {
        const answer: Page<AuditRecord> = await get<Page<AuditRecord>>("/v1/audit", { run_id: runId, limit: AUDIT_PAGE, cursor }, signal);
        records.push(...answer.items);
        cursor = answer.next_cursor;
        if (!answer.has_more || cursor === null) return { records, isCut: false };
      }
      return { records, isCut: true };
    },
    enabled: run !== undefined,
    placeholderData: (before) => before,
    staleTime: (query) => (isOpen || query.state.dataUpdatedAt < Date.parse(run?.finished_at ?? "") + RECORDED_WITHIN_MS ? 0 : Infinity),
    refetchInterval: () => {
      if (isOpen) return EVERY_MS * 2;
      const ended = Date.parse(run?.finished_at ?? "");
      return Date.now() - ended < RECORDED_WITHIN_MS ? 1_000 : false;
    },
    retry: false,
  });
}

/** The approvals of a run in detail, if the user may see them. */
export function useApprovals(story: Story | undefined) {
  const states = story?.approvals.map((one) => one.status).join(" ") ?? "";
  const runId = story?.run.run_id ?? "";
  return useQuery({
    queryKey: ["run", runId, "approvals", states],
    queryFn: ({ signal }) => get<Page<Approval>>("/v1/approvals", { run_id: runId, limit: 200 }, signal),
    enabled: states !== "",
    placeholderData: (before) => before,
    retry: false,
  });
}
