// Two runs side by side: input, grants, steps, answers and figures.
import { useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import { ENDED, type Story } from "@/api/types";
import { useLanguage, useT } from "@/i18n";
import { Badge, Button, Card, Duration, Empty, ErrorBox, Field, Icon, Input, Money, Num, Page, Skeleton, StatusBadge, Time } from "@/ui";
import { durationText } from "@/ui/format-text";
import { useQueryString } from "./address";
import styles from "./compare.module.css";
import { alignSteps, comparable, rightsChanges } from "./logic/compare";
import { diffTexts } from "./logic/diff";
import { answerOf, type Fold } from "./logic/fold";
import { time } from "./logic/read";
import { said } from "./logic/say";
import { inputText, timeline, usageOf, type Entry } from "./logic/timeline";
import { shortId } from "./run-table";
import { useResults } from "./use-results";
import { useCalls, useStory } from "./use-story";

export default function CompareRunsPage() {
  const t = useT();
  const params = new URLSearchParams(useQueryString());
  const [a, b] = [params.get("a") ?? "", params.get("b") ?? ""];
  return (
    <Page title={t("runs.compare.title")} subtitle={t("runs.compare.subtitle")} back={{ href: "/runs", label: t("runs.show.back") }}>
      {a === "" || b === "" ? <Choose a={a} b={b} /> : <Both key={`${a} ${b}`} a={a} b={b} />}
    </Page>
  );
}

function Choose({ a, b }: { a: string; b: string }) {
  const t = useT();
  const [, navigate] = useLocation();
  const [left, setLeft] = useState(a);
  const [right, setRight] = useState(b);
  const go = () => navigate(`/runs/compare?a=${encodeURIComponent(left.trim())}&b=${encodeURIComponent(right.trim())}`);
  return (
    <Card>
      <form className={styles["choose"]} onSubmit={(event) => (event.preventDefault(), go())}>
        <p className="muted">{t("runs.compare.choose")}</p>
        <Field label={t("runs.compare.left")}>{(props) => <Input {...props} value={left} onChange={(event) => setLeft(event.target.value)} />}</Field>
        <Field label={t("runs.compare.right")}>{(props) => <Input {...props} value={right} onChange={(event) => setRight(event.target.value)} />}</Field>
        <Button type="submit" variant="primary" disabled={left.trim() === "" || right.trim() === ""}>
          {t("runs.compare.go")}
        </Button>
      </form>
    </Card>
  );
}

interface Whole {
  story: Story;
  entries: Entry[];
  fold: Fold;
}

function useWhole(id: string): { whole: Whole | undefined; error: unknown } {
  const story = useStory(id);
  const results = useResults(id, story.data !== undefined && ENDED.has(story.data.run.status));
  const calls = useCalls(id, story.data);
  const { fold, version } = results;
  const whole = useMemo(
    () => story.data && { story: story.data, fold, entries: comparable(timeline({ story: story.data, steps: fold.steps, audit: calls.data?.records ?? [] })) },
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the fold changes in place; `version` says when
    [story.data, fold, version, calls.data],
  );
  return { whole, error: story.error ?? (results.state === "failed" ? results.error : null) };
}

function Both({ a, b }: { a: string; b: string }) {
  const t = useT();
  const [, navigate] = useLocation();
  const [left, right] = [useWhole(a), useWhole(b)];
  const error = left.error ?? right.error;
  if (error) return <ErrorBox error={error} />;
  if (!left.whole || !right.whole) return <Card><Skeleton lines={6} /></Card>;
  return (
    <>
      <Card title={t("runs.compare.facts")} flush actions={<Button size="s" icon="refresh" onClick={() => navigate(`/runs/compare?a=${encodeURIComponent(b)}&b=${encodeURIComponent(a)}`, { replace: true })}>{t("runs.compare.swap")}</Button>}>
        <Glance left={left.whole} right={right.whole} />
      </Card>
      <TextDiff title={t("runs.compare.input")} left={inputText(left.whole.story.event) ?? ""} right={inputText(right.whole.story.event) ?? ""} />
      <TextDiff title={t("runs.compare.output")} left={answerOf(left.whole.fold.steps)} right={answerOf(right.whole.fold.steps)} />
      <RightsDiff left={left.whole.story} right={right.whole.story} />
      <StepsDiff left={left.whole.entries} right={right.whole.entries} />
    </>
  );
}

function Glance({ left, right }: { left: Whole; right: Whole }) {
  const t = useT();
  const took = ({ story }: Whole) => {
    const [from, to] = [time(story.run.created_at), time(story.run.finished_at)];
    return from === undefined || to === undefined ? undefined : to - from;
  };
  const tools = (whole: Whole) => whole.entries.filter((entry) => entry.kind === "tool").length;
  const rows: { name: string; cell: (whole: Whole) => React.ReactNode; same: unknown[] }[] = [
    { name: t("runs.col.run"), cell: ({ story }) => <Link className="mono" href={`/runs/${encodeURIComponent(story.run.run_id)}`}>{shortId(story.run.run_id)}</Link>, same: [0, 0] },
    { name: t("runs.col.status"), cell: ({ story }) => <StatusBadge status={story.run.status} />, same: [left.story.run.status, right.story.run.status] },
    { name: t("runs.col.agent"), cell: ({ story }) => story.run.agent, same: [left.story.run.agent, right.story.run.agent] },
    { name: t("runs.fact.runner"), cell: ({ story }) => <code>{story.run.runner_id}</code>, same: [left.story.run.runner_id, right.story.run.runner_id] },
    { name: t("runs.col.when"), cell: ({ story }) => <Time at={story.run.created_at} absolute />, same: [0, 0] },
    { name: t("runs.fact.took"), cell: (whole) => <Duration ms={took(whole)} />, same: [0, 0] },
    { name: t("runs.fact.modelCalls"), cell: ({ story }) => <Num value={usageOf(story).calls} />, same: [usageOf(left.story).calls, usageOf(right.story).calls] },
    { name: t("runs.fact.tokens"), cell: ({ story }) => <Num value={usageOf(story).tokens} />, same: [usageOf(left.story).tokens, usageOf(right.story).tokens] },
    { name: t("runs.fact.cost"), cell: ({ story }) => <Money amount={usageOf(story).cost} />, same: [usageOf(left.story).cost, usageOf(right.story).cost] },
    { name: t("runs.fact.toolCalls"), cell: (whole) => <Num value={tools(whole)} />, same: [tools(left), tools(right)] },
  ];
  return (
    <div className={styles["scroll"]}>
      <table className={styles["glance"]}>
        <thead>
          <tr>
            <th scope="col"><span className="visually-hidden">{t("runs.compare.facts")}</span></th>
            <th scope="col">{t("runs.compare.left")}</th>
            <th scope="col">{t("runs.compare.right")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name} className={row.same[0] === row.same[1] ? "" : styles["differs"]}>
              <th scope="row">{row.name}</th>
              <td>{row.cell(left)}</td>
              <td>{row.cell(right)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function TextDiff({ title, left, right }: { title: string; left: string; right: string }) {
  const t = useT();
  const pieces = useMemo(() => diffTexts(left, right), [left, right]);
  const isSame = left === right;
  return (
    <Card title={title} actions={<Badge tone={isSame ? "ok" : "warn"}>{isSame ? t("runs.compare.same") : t("runs.compare.differs")}</Badge>}>
      {left === "" && right === "" ? (
        <p className="muted">{t("runs.show.noAnswer")}</p>
      ) : isSame ? (
        <p className={styles["text"]}>{left}</p>
      ) : (
        <div className={styles["columns"]}>
          {(["left", "right"] as const).map((side) => (
            <p key={side} className={styles["text"]} role="group" aria-label={t(`runs.compare.${side}`)}>
              {pieces.map((piece, index) =>
                piece.side === "both" ? <span key={index}>{piece.text}</span> : piece.side === side ? side === "left" ? <del key={index}>{piece.text}</del> : <ins key={index}>{piece.text}</ins> : null,
              )}
            </p>
          ))}
        </div>
      )}
    </Card>
  );
}

function RightsDiff({ left, right }: { left: Story; right: Story }) {
  const t = useT();
  const changes = rightsChanges(left.grant, right.grant);
  return (
    <Card title={t("runs.compare.rights")} actions={<Badge tone={changes.length === 0 ? "ok" : "warn"}>{changes.length === 0 ? t("runs.compare.same") : t("runs.compare.differs")}</Badge>}>
      {changes.length === 0 ? (
        <p className="muted">{t("runs.compare.noRights")}</p>
      ) : (
        <dl className={styles["changes"]}>
          {changes.map((change) => (
            <div key={change.key}>
              <dt className="mono">{change.key}</dt>
              <dd><code>{JSON.stringify(change.left) ?? "–"}</code></dd>
              <dd><code>{JSON.stringify(change.right) ?? "–"}</code></dd>
            </div>
          ))}
        </dl>
      )}
    </Card>
  );
}

const STEPS_AT_ONCE = 200;

function StepsDiff({ left, right }: { left: Entry[]; right: Entry[] }) {
  const t = useT();
  const [all, setAll] = useState(false);
  const parts = useMemo(() => alignSteps(left, right), [left, right]);
  if (parts.length === 0) return <Card title={t("runs.compare.steps")}><Empty title={t("runs.compare.noSteps")} /></Card>;
  const shown = all ? parts : parts.slice(0, STEPS_AT_ONCE);
  return (
    <Card title={t("runs.compare.steps")} flush>
      <ol className={styles["steps"]}>
        {shown.map((part, index) => (
          <li key={index} className={styles[part.side]}>
            <StepCell entry={part.left} />
            <StepCell entry={part.right} />
          </li>
        ))}
      </ol>
      {parts.length > shown.length && <div className={styles["more"]}><Button size="s" onClick={() => setAll(true)}>{t("ui.itemsMore", { count: parts.length - shown.length })}</Button></div>}
    </Card>
  );
}

function StepCell({ entry }: { entry: Entry | undefined }) {
  const { t, language } = useLanguage();
  if (entry === undefined) return <div className={styles["none"]} aria-hidden="true" />;
  const took = entry.start === undefined || entry.end === undefined ? 0 : entry.end - entry.start;
  return (
    <div className={styles["step"]}>
      {entry.tone === "bad" && <Icon name="error" size={14} />}
      <span className={styles["stepTitle"]}>{said(t, entry.title)}</span>
      <span className="muted truncate">{entry.hint}</span>
      <span className="spacer" />
      <span className={`muted nums ${styles["stepTook"] ?? ""}`}>{took < 1 ? "" : durationText(took, language)}</span>
    </div>
  );
}
