// The list of agents and the dry run.
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { get, type Page as ApiPage } from "@/api/client";
import type { Agent } from "@/api/types";
import { useT } from "@/i18n";
import { said } from "@/pages/runs/logic/say";
import { Badge, Card, Empty, Icon, Loaded, Page, Skeleton } from "@/ui";
import styles from "./agents.module.css";
import { scopeSentences } from "./logic/binding";
import { TryEvent } from "./try-event";

const EVERY_MS = 10_000;

export default function AgentsPage() {
  const t = useT();
  const agents = useQuery({ queryKey: ["agents"], queryFn: () => get<ApiPage<Agent>>("/v1/agents"), refetchInterval: EVERY_MS });
  return (
    <Page title={t("agents.title")} subtitle={t("agents.subtitle")}>
      <div className={styles["split"]}>
        <Loaded query={agents} skeleton={<Card><Skeleton lines={6} height={24} /></Card>}>
          {({ items }) =>
            items.length === 0 ? (
              <Card>
                <Empty icon="agents" title={t("agents.list.empty")}>{t("agents.list.emptyHint")}</Empty>
              </Card>
            ) : (
              <ul className={styles["list"]}>
                {items.map((agent) => (
                  <AgentCard key={agent.name} agent={agent} />
                ))}
              </ul>
            )
          }
        </Loaded>
        <TryEvent agents={agents.data?.items ?? []} />
      </div>
    </Page>
  );
}

function AgentCard({ agent }: { agent: Agent }) {
  const t = useT();
  const where = scopeSentences(agent).map((text) => said(t, text));
  return (
    <li className={styles["agent"]}>
      <div className={styles["agentHead"]}>
        <Link href={`/agents/${encodeURIComponent(agent.name)}`} className={styles["agentName"]}>
          {agent.name}
        </Link>
        {agent.built_in && <Badge>{t("agents.list.builtIn")}</Badge>}
        <span className="spacer" />
        <Badge tone={agent.runner_available ? "ok" : "bad"}>{agent.runner_available ? t("agents.list.available") : t("agents.list.unavailable")}</Badge>
      </div>
      <div className={styles["flow"]}>
        <span className={styles["chips"]}>
          {agent.events.length === 0 ? <span className="muted">{t("agents.list.onlyNamed")}</span> : agent.events.map((event) => <code key={event}>{event}</code>)}
        </span>
        <span className={styles["leads"]}>
          <Icon name="arrowRight" size={16} />
          <code className={styles["runner"]}>{agent.runner_id}</code>
        </span>
      </div>
      <p className={styles["agentNote"]}>
        {agent.events.length === 0 ? "" : where.length === 0 ? t("agents.bind.everywhere") : where.join(" ")} {t(`agents.bind.queue.${agent.queue}`)}
      </p>
    </li>
  );
}
