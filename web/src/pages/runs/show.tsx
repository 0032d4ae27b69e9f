// One run: its timeline, its grant and its raw data.
import { useEffect, useMemo } from "react";
import { Link, useLocation } from "wouter";
import { ENDED, type Story } from "@/api/types";
import { useT } from "@/i18n";
import { Rights } from "@/pages/agents/rights";
import { rightsOf } from "@/pages/agents/logic/permissions";
import { Button, Card, CopyButton, Empty, ErrorBox, Icon, Page, Skeleton, StatusBadge, Tabs } from "@/ui";
import { useLastPart, useQueryString } from "./address";
import { timeline } from "./logic/timeline";
import { RawView } from "./raw-view";
import { RunActions } from "./run-actions";
import { shortId } from "./run-table";
import styles from "./show.module.css";
import { Summary } from "./summary";
import { TimelineView } from "./timeline-view";
import { Undelivered } from "./undelivered";
import { useResults, type Results } from "./use-results";
import { useApprovals, useCalls, useStory, type Calls } from "./use-story";

export default function RunPage() {
  const id = useLastPart();
  return <OneRun key={id} id={id} />;
}

function OneRun({ id }: { id: string }) {
  const t = useT();
  const story = useStory(id);
  const run = story.data?.run;
  const hasEnded = run !== undefined && ENDED.has(run.status);
  const results = useResults(id, hasEnded);
  const calls = useCalls(id, story.data);
  // The stream may report the end before the story is refreshed.
  const isStale = results.fold.ended && run !== undefined && !hasEnded;
  const { refetch } = story;
  useEffect(() => {
    if (isStale) void refetch();
  }, [isStale, refetch]);
  return (
    <Page
      title={shortId(id)}
      heading={
        <span className={styles["heading"]}>
          <span className="mono">{shortId(id)}</span>
          <CopyButton text={id} />
          {run && <StatusBadge status={run.status} />}
        </span>
      }
      back={{ href: "/runs", label: t("runs.show.back") }}
      actions={story.data && <RunActions story={story.data} />}
    >
      {story.data ? (
        <StoryView story={story.data} results={results} calls={calls.data} callsFailed={calls.error !== null} />
      ) : story.error ? (
        <ErrorBox error={story.error} onRetry={() => void story.refetch()} />
      ) : (
        <Card>
          <Skeleton lines={6} />
        </Card>
      )}
    </Page>
  );
}

interface StoryProps {
  story: Story;
  results: Results;
  calls: Calls | undefined;
  callsFailed: boolean;
}

function StoryView({ story, results, calls, callsFailed }: StoryProps) {
  const t = useT();
  const [, navigate] = useLocation();
  const tab = new URLSearchParams(useQueryString()).get("tab") ?? "timeline";
  const { fold, version } = results;
  const records = calls?.records;
  const approvals = useApprovals(story).data?.items;
  const entries = useMemo(
    () => timeline({ story, steps: fold.steps, audit: records ?? [], approvals: approvals ?? [] }),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the fold changes in place; `version` says when
    [story, fold, version, records, approvals],
  );
  const tabs = [
    {
      value: "timeline", label: t("runs.show.timeline"),
      content: (
        <div className="stack">
          <Reading results={results} total={story.run.last_sequence} />
          <TimelineView entries={entries} isRunning={!ENDED.has(story.run.status)} />
          {callsFailed && <p className="muted">{t("runs.show.auditMissing")}</p>}
          {calls?.isCut === true && <p className="muted">{t("runs.show.callsCut", { count: calls.records.length })}</p>}
        </div>
      ),
    },
    {
      value: "rights", label: t("runs.show.rights"),
      content: <Card title={t("runs.grant.title")}>{story.grant ? <Rights rights={rightsOf(story.grant)} /> : <Empty title={t("runs.fact.unknown")} />}</Card>,
    },
    { value: "raw", label: t("runs.show.raw"), content: <RawView story={story} results={results} records={records ?? []} /> },
  ];
  const choose = (value: string) => navigate(`/runs/${encodeURIComponent(story.run.run_id)}${value === "timeline" ? "" : `?tab=${value}`}`, { replace: true });
  return (
    <>
      <Related story={story} />
      <Undelivered story={story} />
      <Summary story={story} entries={entries} fold={fold} />
      <Tabs label={t("runs.col.run")} tabs={tabs} value={tabs.some((one) => one.value === tab) ? tab : "timeline"} onChange={choose} />
    </>
  );
}

function Related({ story }: { story: Story }) {
  const t = useT();
  const original = story.replay_of?.run_id;
  if (story.replay_of === null && story.replays.length === 0) return null;
  const compare = (a: string, b: string) => `/runs/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`;
  return (
    <div className={styles["related"]}>
      <Icon name="refresh" size={16} />
      {story.replay_of !== null && (
        <span>
          {t("runs.show.replayOf")}
          {original && (
            <>
              {" "}
              <Link href={`/runs/${encodeURIComponent(original)}`} className="mono">{shortId(original)}</Link>
              {" · "}
              <Link href={compare(original, story.run.run_id)}>{t("runs.show.compareWith")}</Link>
            </>
          )}
        </span>
      )}
      {story.replays.length > 0 && (
        <span>
          {t("runs.show.replays", { count: story.replays.length })}
          {story.replays.slice(-5).map((replay) => replay.run_id && (
            <span key={replay.event_id}>
              {" · "}
              <Link href={compare(story.run.run_id, replay.run_id)} className="mono">{shortId(replay.run_id)}</Link>
            </span>
          ))}
        </span>
      )}
    </div>
  );
}

/** Progress of loading many results. */
function Reading({ results, total }: { results: Results; total: number }) {
  const t = useT();
  if (results.state === "failed") return <ErrorBox error={results.error} />;
  if (results.state === "reconnecting") return <p className={styles["reading"]} role="status">{t("runs.show.reconnecting")}</p>;
  if (results.state === "paused") {
    return (
      <p className={styles["reading"]}>
        {t("runs.show.paused", { count: results.fold.count })} <Button size="s" onClick={results.readOn}>{t("runs.show.readOn")}</Button>
      </p>
    );
  }
  if (results.state === "reading" && total - results.fold.lastSequence > 1_000) {
    return <p className={styles["reading"]} role="status">{t("runs.show.reading", { count: results.fold.count })}</p>;
  }
  return null;
}
