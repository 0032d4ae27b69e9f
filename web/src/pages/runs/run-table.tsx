// A table of runs; on phones each has two lines.
import { Link, useLocation } from "wouter";
import { ENDED, FAILED, type Run } from "@/api/types";
import { useT } from "@/i18n";
import { Duration, StatusBadge, Time } from "@/ui";
import { explainFailure } from "./logic/explain";
import { time } from "./logic/read";
import { said } from "./logic/say";
import styles from "./table.module.css";

export interface RunTableProps {
  runs: Run[];
  /** Ids selected for comparison; without it nothing can be selected. */
  chosen?: string[];
  choose?: (id: string) => void;
  /** Hidden when all rows are of one agent. */
  hideAgent?: boolean;
}

export function RunTable({ runs, chosen, choose, hideAgent }: RunTableProps) {
  const t = useT();
  return (
    <table className={styles["table"]} aria-label={t("runs.title")}>
      <thead>
        <tr>
          {choose && (
            <th scope="col">
              <span className="visually-hidden">{t("runs.list.compare")}</span>
            </th>
          )}
          <th scope="col">{t("runs.col.status")}</th>
          {!hideAgent && <th scope="col">{t("runs.col.agent")}</th>}
          <th scope="col">{t("runs.col.conversation")}</th>
          <th scope="col">{t("runs.col.run")}</th>
          <th scope="col" className={styles["end"]}>{t("runs.col.took")}</th>
          <th scope="col" className={styles["end"]}>{t("runs.col.when")}</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <Row key={run.run_id} run={run} isChosen={chosen?.includes(run.run_id) ?? false} hideAgent={hideAgent ?? false} {...(choose ? { choose } : {})} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  run: Run;
  isChosen: boolean;
  hideAgent: boolean;
  choose?: (id: string) => void;
}

function Row({ run, isChosen, choose, hideAgent }: RowProps) {
  const t = useT();
  const [, navigate] = useLocation();
  const href = `/runs/${encodeURIComponent(run.run_id)}`;
  const open = (target: EventTarget) => {
    const isOwn = target instanceof Element && target.closest("a,button,input,label") !== null;
    if (!isOwn && !window.getSelection()?.toString()) navigate(href);
  };
  return (
    <tr className={isChosen ? styles["chosen"] : ""} onClick={(event) => open(event.target)}>
      {choose && (
        <td className={styles["choose"]}>
          <label>
            <input type="checkbox" checked={isChosen} onChange={() => choose(run.run_id)} aria-label={`${t("runs.list.choose")}: ${run.run_id}`} />
          </label>
        </td>
      )}
      <td className={styles["status"]}>
        <StatusBadge status={run.status} />
      </td>
      {!hideAgent && <td className={styles["agent"]}>{run.agent}</td>}
      <td className={styles["conversation"]}>
        <span className={styles["name"]}>{run.conversation_id ?? "–"}</span>
        <Why run={run} />
      </td>
      <td className={styles["id"]}>
        <Link href={href} className="mono" title={run.run_id}>
          {shortId(run.run_id)}
        </Link>
      </td>
      <td className={styles["took"]}>
        <Took run={run} />
      </td>
      <td className={styles["when"]}>
        <Time at={run.created_at} />
      </td>
    </tr>
  );
}

/** The end of an id distinguishes runs; its beginning is the time. */
export function shortId(id: string): string {
  return id.length > 16 ? `${id.slice(0, 4)}…${id.slice(-8)}` : id;
}

function Why({ run }: { run: Run }) {
  const t = useT();
  if (!run.error || !FAILED.has(run.status)) return null;
  const why = explainFailure(run.error.code, run.agent);
  return (
    <span className={styles["why"]} title={`${run.error.code}: ${run.error.message}`}>
      {why.known ? said(t, why.what) : run.error.message}
    </span>
  );
}

function Took({ run }: { run: Run }) {
  const [from, to] = [time(run.created_at), time(run.finished_at)];
  if (from === undefined || (to === undefined && ENDED.has(run.status))) return <>–</>;
  return to === undefined ? <span className="muted">…</span> : <Duration ms={to - from} />;
}
