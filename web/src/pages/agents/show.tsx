// One agent: binding, grant, settings and recent runs.
import { useQuery } from "@tanstack/react-query";
import { Link, useLocation } from "wouter";
import { get, path, type Page as ApiPage } from "@/api/client";
import { FAILED, type AgentDetail, type AuditRecord, type Run } from "@/api/types";
import { useLanguage, useT } from "@/i18n";
import { useLastPart, useQueryString } from "@/pages/runs/address";
import { Inline } from "@/pages/runs/inline";
import { actOf } from "@/pages/runs/logic/explain";
import { said } from "@/pages/runs/logic/say";
import { RunTable } from "@/pages/runs/run-table";
import { Badge, Button, ButtonLink, Card, Empty, JsonView, Loaded, Page, Skeleton, StatusBadge, Tabs } from "@/ui";
import { durationText, moneyText } from "@/ui/format-text";
import styles from "./agents.module.css";
import { bindingSentences, isolationSay } from "./logic/binding";
import { rightsOf } from "./logic/permissions";
import { Rights } from "./rights";
import { SettingsForm } from "./settings-form";

const EVERY_MS = 10_000;
const RUNS = 20;
/** Codes of refused calls; others failed. */
const REFUSED = ["unauthorized", "not_found", "invalid_argument", "payload_too_large", "rate_limited"];

export default function AgentPage() {
  const t = useT();
  const name = useLastPart();
  const [, navigate] = useLocation();
  const chat = () => {
    // A new chat starts with the agent chosen last.
    localStorage.setItem("greenroom.agent", name);
    navigate("/chat");
  };
  const agent = useQuery({ queryKey: ["agent", name], queryFn: () => get<AgentDetail>(path("/v1/agents/{}", name)), refetchInterval: EVERY_MS });
  return (
    <Page
      title={name}
      heading={
        <span className="row-wrap">
          {name}
          {agent.data?.built_in && <Badge>{t("agents.list.builtIn")}</Badge>}
          {agent.data && <Badge tone={agent.data.runner_available ? "ok" : "bad"}>{agent.data.runner_available ? t("agents.list.available") : t("agents.list.unavailable")}</Badge>}
        </span>
      }
      subtitle={agent.data && <code>{agent.data.runner_id}</code>}
      back={{ href: "/agents", label: t("agents.show.back") }}
      actions={<Button icon="chat" onClick={chat}>{t("agents.show.chat")}</Button>}
    >
      <Loaded query={agent} skeleton={<Card><Skeleton lines={8} /></Card>}>{(data) => <Parts agent={data} />}</Loaded>
    </Page>
  );
}

function Parts({ agent }: { agent: AgentDetail }) {
  const t = useT();
  const [, navigate] = useLocation();
  const wanted = new URLSearchParams(useQueryString()).get("tab") ?? "about";
  const schema = agent.manifest?.config_schema;
  const tabs = [
    { value: "about", label: t("agents.show.about"), content: <About agent={agent} /> },
    { value: "settings", label: t("agents.show.settings"), content: schema ? <SettingsForm agent={agent} schema={schema} /> : <Card><Empty icon="runners" title={t("agents.list.unavailable")}>{t("agents.show.noRunner")}</Empty></Card> },
    { value: "runs", label: t("agents.show.runs"), content: <Runs name={agent.name} /> },
    { value: "raw", label: t("runs.show.raw"), content: <Card><JsonView value={agent} /></Card> },
  ];
  const choose = (value: string) => navigate(`/agents/${encodeURIComponent(agent.name)}${value === "about" ? "" : `?tab=${value}`}`, { replace: true });
  return <Tabs label={agent.name} tabs={tabs} value={tabs.some((tab) => tab.value === wanted) ? wanted : "about"} onChange={choose} />;
}

function About({ agent }: { agent: AgentDetail }) {
  const { t, language } = useLanguage();
  const words = { duration: (ms: number) => durationText(ms, language), money: (amount: number) => moneyText(amount, "USD", language) };
  return (
    <div className="stack">
      <Card title={t("agents.show.binding")}>
        <ul className={styles["sentences"]}>
          {bindingSentences(agent, words).map((text, index) => <li key={index}><Inline text={said(t, text)} /></li>)}
        </ul>
      </Card>
      <Card title={t("agents.show.rights")}>
        {agent.grant ? <Rights rights={rightsOf(agent.grant)} /> : <p className="muted">{t("agents.show.noRunner")}</p>}
      </Card>
      <Card title={t("agents.show.runner")} actions={agent.runner?.status && <StatusBadge status={agent.runner.status} />}>
        {agent.runner ? (
          <div className="stack">
            <p className={styles["process"]}>
              <Link href="/runners">{agent.runner.name}</Link> <span className="muted">{[agent.runner.plugin, agent.runner.version].filter(Boolean).join(" ")}</span>
            </p>
            <p>{said(t, isolationSay(agent.runner.isolation))}</p>
            {agent.runner.last_error && <pre className={styles["words"]}>{agent.runner.last_error}</pre>}
          </div>
        ) : (
          <p className={styles["process"]}>
            <span className="muted">{t("agents.show.noRunner")}</span> <Link href="/runners">{t("agents.runners.title")}</Link>
          </p>
        )}
      </Card>
      <Refused name={agent.name} />
    </div>
  );
}

function Runs({ name }: { name: string }) {
  const t = useT();
  const runs = useQuery({ queryKey: ["runs", "of", name], queryFn: () => get<ApiPage<Run>>("/v1/runs", { agent: name, limit: RUNS }), refetchInterval: EVERY_MS });
  return (
    <Loaded query={runs}>
      {({ items }) => {
        if (items.length === 0) return <Card><Empty icon="runs" title={t("agents.show.noRuns")} /></Card>;
        const bad = items.filter((run) => FAILED.has(run.status)).length;
        return (
          <Card
            flush
            title={bad === 0 ? t("agents.show.allWell", { total: items.length }) : t("agents.show.recentErrors", { count: bad, total: items.length })}
            actions={<ButtonLink size="s" href={`/runs?agent=${encodeURIComponent(name)}`}>{t("agents.show.allRuns")}</ButtonLink>}
          >
            <RunTable runs={items} hideAgent />
          </Card>
        );
      }}
    </Loaded>
  );
}

/** Refused calls of its newest runs, grouped. */
function Refused({ name }: { name: string }) {
  const t = useT();
  const denied = useQuery({ queryKey: ["audit", "denied"], queryFn: () => get<ApiPage<AuditRecord>>("/v1/audit", { denied: true, limit: 200 }), retry: false });
  const own = (denied.data?.items ?? []).filter((record) => record.agent === name && REFUSED.includes(record.code));
  const groups = new Map<string, { record: AuditRecord; count: number }>();
  for (const record of own) {
    const key = `${record.method} ${record.code}`;
    const group = groups.get(key);
    if (group) group.count += 1;
    else groups.set(key, { record, count: 1 });
  }
  return (
    <Card title={t("agents.show.denied")}>
      {groups.size === 0 ? (
        <p className="muted">{t("agents.show.noDenied")}</p>
      ) : (
        <ul className={styles["denied"]}>
          {[...groups.values()].map(({ record, count }) => (
            <li key={`${record.method} ${record.code}`}>
              <span>{said(t, actOf(record.method))}</span>
              <code className="muted">{record.method}</code>
              <Badge tone="warn">{record.code}</Badge>
              <span className="muted">{t("agents.show.deniedCount", { count })}</span>
              {record.run_id && <Link href={`/runs/${encodeURIComponent(record.run_id)}`}>{t("runs.col.run")}</Link>}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
