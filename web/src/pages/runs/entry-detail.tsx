// The details of an expanded timeline entry.
import { lazy, Suspense } from "react";
import { Link } from "wouter";
import { hostUrl } from "@/api/base";
import { useT } from "@/i18n";
import { Rights } from "@/pages/agents/rights";
import { rightsOf } from "@/pages/agents/logic/permissions";
import { Badge, Duration, Facts, JsonView, Skeleton } from "@/ui";
import { aboutOf, actOf } from "./logic/explain";
import { said } from "./logic/say";
import type { Detail, Entry } from "./logic/timeline";
import { text } from "./logic/read";
import styles from "./timeline.module.css";

const Markdown = lazy(() => import("@/ui/markdown"));
/** Longer texts are shown plain: rendering their markup takes too long. */
const MARKDOWN_MAX = 60_000;
const CALLS_AT_ONCE = 200;

export function EntryDetail({ entry }: { entry: Entry }) {
  const t = useT();
  return (
    <div className={styles["detail"]}>
      <DetailBody detail={entry.detail} />
      {entry.kind === "artifact" && entry.detail.type === "json" && <Download id={text(entry.detail.value, "artifact_id")} label={t("runs.artifact.download")} />}
      {entry.kind === "event" && entry.detail.type === "event" && (
        <Link href={`/events/${encodeURIComponent(entry.detail.event.event_id)}`}>{t("runs.event.open")}</Link>
      )}
      {entry.kind === "binding" && <Link href={`/agents/${encodeURIComponent(String(entry.title.with?.["agent"] ?? ""))}`}>{t("runs.binding.open")}</Link>}
    </div>
  );
}

function Download({ id, label }: { id: string | undefined; label: string }) {
  return id === undefined ? null : <a href={hostUrl(`/v1/artifacts/${encodeURIComponent(id)}`)} download>{label}</a>;
}

function DetailBody({ detail }: { detail: Detail }) {
  const t = useT();
  switch (detail.type) {
    case "none":
      return null;
    case "text":
      return <LongText text={detail.text} markdown={detail.markdown} />;
    case "json":
      return <JsonView value={detail.value} />;
    case "event":
      return <JsonView value={detail.event.event ?? detail.event} />;
    case "grant":
      return <Rights rights={rightsOf(detail.grant)} />;
    case "facts":
      return <Facts items={detail.facts.map((fact) => [said(t, fact.name), fact.value])} />;
    case "io":
      return (
        <div className={styles["io"]}>
          {detail.input !== undefined && <Part name={t("runs.tool.input")} value={detail.input} />}
          {detail.error !== undefined && <Part name={t("runs.tool.error")} value={detail.error} />}
          {detail.output !== undefined && detail.output !== null && <Part name={t("runs.tool.output")} value={detail.output} />}
        </div>
      );
    case "calls":
      return <CallList detail={detail} />;
  }
}

function Part({ name, value }: { name: string; value: unknown }) {
  return (
    <div>
      <h3>{name}</h3>
      <JsonView value={value} />
    </div>
  );
}

export function LongText({ text: value, markdown }: { text: string; markdown: boolean }) {
  if (!markdown || value.length > MARKDOWN_MAX) {
    return (
      <pre className={styles["pre"]} tabIndex={0}>
        {value}
      </pre>
    );
  }
  return (
    <Suspense fallback={<Skeleton lines={2} />}>
      <Markdown text={value} />
    </Suspense>
  );
}

function CallList({ detail }: { detail: Extract<Detail, { type: "calls" }> }) {
  const t = useT();
  return (
    <ul className={styles["calls"]}>
      {detail.records.slice(0, CALLS_AT_ONCE).map((record, index) => (
        <li key={index}>
          <span>{said(t, actOf(record.method))}</span>
          <code>{record.method}</code>
          <span className="muted truncate">{aboutOf(record)}</span>
          {record.code !== "ok" && <Badge tone="bad">{record.code}</Badge>}
          <span className="muted">
            <Duration ms={record.duration_us / 1_000} />
          </span>
        </li>
      ))}
      {detail.records.length > CALLS_AT_ONCE && <li className="muted">{t("ui.itemsMore", { count: detail.records.length - CALLS_AT_ONCE })}</li>}
    </ul>
  );
}
