// Runners: status, sandbox, requested permissions and last log lines.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { get, type Page as ApiPage } from "@/api/client";
import type { Agent, Manifest, Runner } from "@/api/types";
import { useLanguage, useT } from "@/i18n";
import { said } from "@/pages/runs/logic/say";
import { Badge, Button, Card, Empty, Icon, Loaded, Num, Page, Skeleton, StatusBadge, Time } from "@/ui";
import { durationText } from "@/ui/format-text";
import styles from "./agents.module.css";
import { isolationSay } from "./logic/binding";
import { localText } from "./logic/form";
import { requestedPermissions } from "./logic/permissions";
import { Names } from "./rights";

const EVERY_MS = 3_000;
const CAPABILITIES = ["streaming", "tool_calling", "knowledge_retrieval", "multimodal_input", "steering", "interrupt", "stateful_session", "platform_api"] as const;

export default function RunnersPage() {
  const t = useT();
  const runners = useQuery({ queryKey: ["runners"], queryFn: () => get<ApiPage<Runner>>("/v1/runners"), refetchInterval: EVERY_MS });
  const agents = useQuery({ queryKey: ["agents"], queryFn: () => get<ApiPage<Agent>>("/v1/agents"), staleTime: 30_000 });
  return (
    <Page title={t("agents.runners.title")} subtitle={t("agents.runners.subtitle")}>
      <Loaded query={runners} skeleton={<Card><Skeleton lines={8} /></Card>}>
        {({ items }) => {
          if (items.length === 0) return <Card><Empty icon="runners" title={t("agents.runners.empty")}>{t("agents.runners.emptyHint")}</Empty></Card>;
          const bad = items.filter((runner) => runner.status !== "ready").length;
          return (
            <>
              <p className={bad === 0 ? "muted" : styles["wrong"]}>
                {bad === 0 ? t("agents.runners.allWell", { count: items.length }) : t("agents.runners.someBad", { count: bad, total: items.length })}
              </p>
              <ul className={styles["list"]}>
                {[...items].sort((a, b) => Number(a.status === "ready") - Number(b.status === "ready")).map((runner) => (
                  <RunnerCard key={runner.name} runner={runner} agents={agents.data?.items ?? []} />
                ))}
              </ul>
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

function RunnerCard({ runner, agents }: { runner: Runner; agents: Agent[] }) {
  const { t, language } = useLanguage();
  const [open, setOpen] = useState(false);
  const ids = new Set(runner.runners.map((one) => one.id));
  const users = agents.filter((agent) => ids.has(agent.runner_id));
  const status = (["ready", "starting", "backing_off", "stopped", "disconnected"] as const).find((one) => one === runner.status);
  const facts: [string, React.ReactNode][] = [
    [t("agents.runners.plugin"), [runner.plugin, runner.version].filter(Boolean).join(" ") || "–"],
    [t("agents.runners.pid"), runner.pid ?? <span className="muted">{t("agents.runners.noProcess")}</span>],
    [t("agents.runners.inFlight"), <Num key="n" value={runner.runs_in_flight ?? 0} />],
    [t("agents.runners.restarts"), <Num key="r" value={runner.restarts ?? 0} />],
    [t("agents.runners.usedBy"), users.length === 0 ? <span className="muted">{t("agents.runners.unused")}</span> : users.map((agent) => <Link key={agent.name} href={`/agents/${encodeURIComponent(agent.name)}`} className={styles["user"]}>{agent.name}</Link>)],
  ];
  return (
    <li className={styles["agent"]}>
      <div className={styles["agentHead"]}>
        <h2>{runner.name}</h2>
        <StatusBadge status={runner.status ?? "unknown"} />
        <span className="muted">{status && t(`agents.runners.status.${status}`)} {typeof runner.retry_in_ms === "number" && t("agents.runners.retryIn", { time: durationText(runner.retry_in_ms, language) })}</span>
      </div>
      <dl className={styles["facts"]}>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p className={styles["sandbox"]}>
        <Icon name={runner.isolation?.startsWith("landlock") ? "approvals" : "warning"} size={16} />
        {said(t, isolationSay(runner.isolation))}
      </p>
      {runner.last_error && (
        <div>
          <h3 className={styles["small"]}>{t("agents.runners.lastLog")}</h3>
          <pre className={styles["words"]} tabIndex={0}>{runner.last_error}</pre>
        </div>
      )}
      {runner.last_failure && runner.last_failure.message !== runner.last_error && (
        <div>
          <h3 className={styles["small"]}>
            {t("agents.runners.lastFailure")} <Time at={runner.last_failure.at} />
          </h3>
          <pre className={styles["words"]} tabIndex={0}>{runner.last_failure.message}</pre>
        </div>
      )}
      {(runner.warnings ?? []).map((warning) => (
        <p key={warning} className={styles["sandbox"]}><Icon name="warning" size={16} />{warning}</p>
      ))}
      {runner.runners.length > 0 && (
        <>
          <Button size="s" variant="quiet" icon={open ? "chevronDown" : "chevronRight"} aria-expanded={open} onClick={() => setOpen(!open)}>
            {t("agents.asks.title")}
          </Button>
          {open && runner.runners.map((manifest) => <Asks key={manifest.id} manifest={manifest} />)}
        </>
      )}
    </li>
  );
}

function Asks({ manifest }: { manifest: Manifest }) {
  const { t, language } = useLanguage();
  const rights = requestedPermissions(manifest.permissions);
  const can = CAPABILITIES.filter((name) => manifest.capabilities?.[name] === true);
  return (
    <div className={styles["asks"]}>
      <p>
        <strong>{localText(manifest.label, language)}</strong> <code className="muted">{manifest.id}</code>
      </p>
      {manifest.description && <p className="muted">{localText(manifest.description, language)}</p>}
      <div className={styles["chips"]}>{can.map((name) => <Badge key={name}>{t(`agents.cap.${name}`)}</Badge>)}</div>
      {rights.length === 0 ? (
        <p className="muted">{t("agents.asks.none")}</p>
      ) : (
        <ul className={styles["askList"]}>
          {rights.map((right, index) => (
            <li key={index}>
              {said(t, right.text)}
              <Names names={right.names} />
            </li>
          ))}
        </ul>
      )}
      <p className="muted">{t("agents.asks.note")}</p>
    </div>
  );
}
