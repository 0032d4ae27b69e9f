// The first page: how the host is and what it has done; on a host where nothing has happened yet, the first steps.
import { useQuery } from "@tanstack/react-query";
import { Redirect } from "wouter";
import { get, type Page as ListPage } from "@/api/client";
import type { Overview, Run } from "@/api/types";
import { useT } from "@/i18n";
import { Card, Loaded, Page, Skeleton, Time } from "@/ui";
import { useSession } from "../approvals/use-session";
import { useFilters } from "../facts/filter-bar";
import { codeIn } from "../signin/code";
import { Charts } from "./charts";
import { FirstStart } from "./first-start";
import { Health } from "./health";
import { Problems } from "./problems";
import { RangeSwitch } from "./range-switch";
import { RANGES, rangeOf, type Range } from "./series";
import { Tiles } from "./tiles";

export default function OverviewPage() {
  const { filters, set } = useFilters(["range", "show"] as const);
  const session = useSession();
  const runs = useQuery({
    queryKey: ["runs", "any"],
    queryFn: ({ signal }) => get<ListPage<Run>>("/v1/runs", { limit: 1 }, signal),
    enabled: session.data?.role !== "sender",
    refetchInterval: (query) => (query.state.data?.items.length ? false : 5_000),
  });
  // The address that the host prints leads here with a code, which is the sign-in page's to take.
  if (codeIn(window.location.hash)) return <Redirect to={`/signin${window.location.hash}`} replace />;
  // A sender talks, and sees its own conversations alone.
  if (session.data?.role === "sender") return <Redirect to="/chat" replace />;
  const isNew = runs.data?.items.length === 0 && filters.show !== "figures";
  if (runs.isPending) return <Skeleton lines={6} />;
  if (isNew) return <FirstStart onSkip={() => set({ show: "figures" })} />;
  return <Figures range={rangeOf(filters.range)} onRange={(range) => set({ range: range === "1h" ? null : range })} />;
}

function useOverview(range: Range) {
  return useQuery({
    queryKey: ["overview", range],
    queryFn: ({ signal }) => get<Overview>("/v1/overview", { minutes: RANGES[range] }, signal),
    refetchInterval: range === "1h" ? 10_000 : 60_000,
    placeholderData: (before) => before,
  });
}

function Figures({ range, onRange }: { range: Range; onRange: (range: Range) => void }) {
  const t = useT();
  const overview = useOverview(range);
  return (
    <Page
      title={t("overview.title")}
      subtitle={overview.data && <UpSince overview={overview.data} />}
      actions={<RangeSwitch range={range} onRange={onRange} />}
    >
      <Loaded query={overview} skeleton={<Waiting />}>
        {(data) => (
          <>
            <Problems overview={data} />
            <Tiles overview={data} />
            <Charts overview={data} range={range} />
            <Health overview={data} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function UpSince({ overview }: { overview: Overview }) {
  const t = useT();
  return (
    <>
      {t("overview.up_since", { version: overview.host.version })} <Time at={overview.host.started_at} />
    </>
  );
}

function Waiting() {
  return (
    <Card>
      <Skeleton lines={8} />
    </Card>
  );
}
