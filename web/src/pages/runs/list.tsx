// The list of runs, newest first: filters in the URL, two runs to compare.
import { useCallback, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { useT } from "@/i18n";
import { Button, ButtonLink, Card, Empty, ErrorBox, Page, Skeleton } from "@/ui";
import { useQueryString } from "./address";
import { FilterBar } from "./filter-bar";
import styles from "./list.module.css";
import { readFilters, writeFilters, type Filters } from "./logic/filters";
import { RunTable } from "./run-table";
import { useRuns } from "./use-runs";

/** Below this scroll position the newest rows may move. */
const AT_TOP_PX = 120;

export default function RunsPage() {
  const t = useT();
  const [, navigate] = useLocation();
  const search = useQueryString();
  const filters = useMemo(() => readFilters(search), [search]);
  const [live, setLive] = useState(true);
  const [chosen, setChosen] = useState<string[]>([]);
  const hold = useCallback(() => window.scrollY > AT_TOP_PX, []);
  const list = useRuns(filters, live, hold);
  const setFilters = useCallback(
    (next: Filters) => {
      const query = writeFilters(next);
      navigate(query === "" ? "/runs" : `/runs?${query}`, { replace: true });
    },
    [navigate],
  );
  const choose = (id: string) => setChosen((now) => (now.includes(id) ? now.filter((one) => one !== id) : [...now.slice(-1), id]));
  return (
    <Page
      title={t("runs.title")}
      subtitle={t("runs.subtitle")}
      actions={
        <>
          {chosen.length > 0 && (
            <Button
              variant={chosen.length === 2 ? "primary" : "secondary"}
              disabled={chosen.length < 2}
              onClick={() => navigate(`/runs/compare?a=${encodeURIComponent(chosen[0] ?? "")}&b=${encodeURIComponent(chosen[1] ?? "")}`)}
            >
              {chosen.length === 2 ? t("runs.list.compare") : t("runs.list.compareHint")}
            </Button>
          )}
          <Button aria-pressed={live} title={live ? t("runs.list.pause") : t("runs.list.resume")} onClick={() => setLive(!live)}>
            <span className={live ? styles["live"] : styles["still"]} aria-hidden="true" />
            {live ? t("runs.list.live") : t("runs.list.paused")}
          </Button>
        </>
      }
    >
      <FilterBar filters={filters} onChange={setFilters} />
      {list.held > 0 && (
        <div className={styles["held"]}>
          <Button variant="primary" size="s" icon="arrowUp" onClick={() => (list.showHeld(), window.scrollTo({ top: 0 }))}>
            {t("runs.list.newRuns", { count: list.held })}
          </Button>
        </div>
      )}
      <Rows list={list} filtered={Object.keys(filters).length > 0} chosen={chosen} choose={choose} clear={() => setFilters({})} />
    </Page>
  );
}

interface RowsProps {
  list: ReturnType<typeof useRuns>;
  filtered: boolean;
  chosen: string[];
  choose: (id: string) => void;
  clear: () => void;
}

function Rows({ list, filtered, chosen, choose, clear }: RowsProps) {
  const t = useT();
  if (list.error && list.runs.length === 0) return <ErrorBox error={list.error} onRetry={list.refetch} />;
  if (list.isPending) return <Card><Skeleton lines={8} height={20} /></Card>;
  if (list.runs.length === 0 && !list.loadingMore) {
    return filtered ? (
      <Card>
        <Empty icon="filter" title={t("runs.list.none")} action={<Button onClick={clear}>{t("runs.list.clear")}</Button>}>{t("runs.list.noneHint")}</Empty>
      </Card>
    ) : (
      <Card>
        <Empty icon="runs" title={t("runs.list.empty")} action={<ButtonLink href="/chat" variant="primary" icon="chat">{t("runs.list.openChat")}</ButtonLink>}>
          {t("runs.list.emptyHint")}
        </Empty>
      </Card>
    );
  }
  return (
    <>
      <Card flush>
        <RunTable runs={list.runs} chosen={chosen} choose={choose} />
      </Card>
      {list.hasMore ? (
        <div className={styles["more"]}>
          <Button busy={list.loadingMore} onClick={list.loadMore}>{list.loadingMore ? t("runs.list.searching") : t("runs.list.more")}</Button>
        </div>
      ) : (
        <div className={`${styles["more"]} muted`}>{t("runs.list.end")}</div>
      )}
    </>
  );
}
