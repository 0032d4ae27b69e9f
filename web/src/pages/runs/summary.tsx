// The head of a run's page: input, answer and figures.
import { useMemo } from "react";
import { Link } from "wouter";
import { ENDED, FAILED, type Story } from "@/api/types";
import { useLanguage } from "@/i18n";
import { Card, Duration, Icon, Money, Num, Time } from "@/ui";
import { shortId } from "@/pages/facts/short-id";
import { durationText } from "@/ui/format-text";
import { LongText } from "./entry-detail";
import { Inline } from "./inline";
import { explainFailure } from "./logic/explain";
import { answerOf, type Fold } from "./logic/fold";
import { time } from "./logic/read";
import { said } from "./logic/say";
import { inputText, usageOf, type Entry } from "./logic/timeline";
import styles from "./show.module.css";

/** A longer answer is collapsed at first. */
const LONG = 1_200;

export function Summary({ story, entries, fold }: { story: Story; entries: Entry[]; fold: Fold }) {
  const question = inputText(story.event);
  const answer = answerOf(fold.steps);
  return (
    <Card>
      <div className={styles["summary"]}>
        <Headline story={story} entries={entries} />
        {(question !== undefined || answer !== "") && (
          <div className={styles["talk"]}>
            {question !== undefined && question !== "" && <div className={styles["asked"]}>{question.length > LONG ? `${question.slice(0, LONG)}…` : question}</div>}
            {answer !== "" && <Answer text={answer} isOpen={!ENDED.has(story.run.status)} />}
          </div>
        )}
        <Figures story={story} results={fold.count} />
      </div>
    </Card>
  );
}

/** A text that still grows is rendered plain, which is cheap. */
function Answer({ text, isOpen }: { text: string; isOpen: boolean }) {
  const { t } = useLanguage();
  if (isOpen) return <div className={styles["answered"]}><p className={styles["writing"]}>{text.length > LONG ? `…${text.slice(-LONG)}` : text}</p></div>;
  if (text.length <= LONG) return <div className={styles["answered"]}><LongText text={text} markdown /></div>;
  return (
    <details className={styles["answered"]}>
      <summary>{`${text.slice(0, 400)}… `}<span className={styles["link"]}>{t("ui.showAll")}</span></summary>
      <LongText text={text} markdown />
    </details>
  );
}

function Headline({ story, entries }: { story: Story; entries: Entry[] }) {
  const { t, language } = useLanguage();
  const { run } = story;
  const [from, to] = [time(run.created_at), time(run.finished_at)];
  const took = from === undefined || to === undefined ? "–" : durationText(to - from, language);
  const parts = useMemo(() => {
    const tools = entries.filter((entry) => entry.kind === "tool").length;
    const refused = entries.filter((entry) => entry.kind === "call" && entry.tone !== "plain").length;
    const { calls } = usageOf(story);
    const join = language === "zh" ? "，" : ", ";
    const words = [
      ...(calls > 0 ? [t("runs.head.models", { count: calls })] : []),
      ...(tools > 0 ? [t("runs.head.tools", { count: tools })] : []),
      ...(refused > 0 ? [t("runs.head.refused", { count: refused })] : []),
    ];
    if (words.length === 0) return "";
    const line = words.join(join);
    return line.charAt(0).toUpperCase() + line.slice(1) + (language === "zh" ? "。" : ".");
  }, [entries, story, t, language]);
  const why = run.error ? explainFailure(run.error.code, run.agent) : undefined;
  const waits = story.approvals.find((approval) => approval.status === "pending");
  return (
    <div className={styles["headline"]}>
      <p className={styles["lead"]}>
        {t(`runs.head.${run.status}`, { agent: run.agent, took })} <span className="muted">{parts}</span>
      </p>
      {why && (
        <div className={FAILED.has(run.status) ? styles["broken"] : styles["because"]}>
          <Icon name={FAILED.has(run.status) ? "error" : "info"} size={18} />
          <div>
            <p><Inline text={said(t, why.what)} /></p>
            {FAILED.has(run.status) && <p className={styles["said"]}><Inline text={run.error?.message ?? ""} /> <code>{run.error?.code}</code></p>}
            <p className={styles["todo"]}><Inline text={said(t, why.todo)} /></p>
          </div>
        </div>
      )}
      {waits && (
        <p className={styles["because"]}>
          <Icon name="approvals" size={18} />
          <span>{t("runs.head.waiting")} <Link href="/approvals">{t("runs.head.toApprovals")}</Link></span>
        </p>
      )}
    </div>
  );
}

function Figures({ story, results }: { story: Story; results: number }) {
  const { t } = useLanguage();
  const { run } = story;
  const usage = usageOf(story);
  const [from, to] = [time(run.created_at), time(run.finished_at)];
  const figures: [string, React.ReactNode][] = [
    [t("runs.fact.created"), <Time key="at" at={run.created_at} absolute />],
    [t("runs.fact.took"), <Duration key="took" ms={from === undefined || to === undefined ? null : to - from} />],
    [t("runs.fact.modelCalls"), <Num key="calls" value={usage.calls} />],
    [t("runs.fact.tokens"), usage.tokens === undefined ? "–" : <Num key="tokens" value={usage.tokens} />],
    [t("runs.fact.cost"), usage.cost === undefined ? "–" : <Money key="cost" amount={usage.cost} />],
    [t("runs.fact.results"), <Num key="results" value={results} />],
  ];
  if (run.conversation_id) {
    figures.unshift([t("runs.col.conversation"), <Link key="c" href={`/chat/${encodeURIComponent(run.conversation_id)}`} title={run.conversation_id}>{shortId(run.conversation_id)}</Link>]);
  }
  figures.unshift([t("runs.col.agent"), <Link key="a" href={`/agents/${encodeURIComponent(run.agent)}`}>{run.agent}</Link>]);
  return (
    <dl className={styles["figures"]}>
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
