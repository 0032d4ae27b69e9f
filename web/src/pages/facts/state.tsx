// State of runners, with owners.
import { useQuery } from "@tanstack/react-query";
import { get, type Page as ListPage } from "@/api/client";
import type { Agent, StateItem, StateScope } from "@/api/types";
import { useT } from "@/i18n";
import { Badge, Bytes, Facts, JsonView, Page, Time } from "@/ui";
import { DisclosureList } from "./disclosure";
import { ChoiceFilter, FilterBar, TextFilter, useFilters } from "./filter-bar";
import { AgentLink, ConversationLink, Listed, RefreshButton } from "./list-parts";
import { shortId } from "./short-id";
import styles from "./facts.module.css";
import { useFactList } from "./use-fact-list";

const FILTERS = ["agent", "scope", "conversation_id", "actor_id", "prefix"] as const;
const SCOPES: readonly StateScope[] = ["conversation", "actor", "subject", "runner", "binding"];

export default function StatePage() {
  const t = useT();
  const { filters, set } = useFilters(FILTERS);
  const list = useFactList<StateItem>("/v1/state", filters);
  const filtered = Object.keys(filters).length > 0;
  const clear = () => set({ agent: null, scope: null, conversation_id: null, actor_id: null, prefix: null });
  return (
    <Page title={t("facts.state_title")} subtitle={t("facts.state_lead")} actions={<RefreshButton list={list} />}>
      <FilterBar active={filtered} onClear={clear}>
        <ChoiceFilter label={t("facts.agent")} value={filters.agent} options={useAgents()} onChange={(agent) => set({ agent })} />
        <ChoiceFilter
          label={t("facts.state_scope")}
          value={filters.scope}
          options={SCOPES.map((scope) => ({ value: scope, label: t(`facts.scope_${scope}`) }))}
          onChange={(scope) => set({ scope })}
        />
        <TextFilter label={t("facts.state_prefix")} value={filters.prefix} onChange={(prefix) => set({ prefix })} />
        <TextFilter label={t("facts.conversation")} value={filters.conversation_id} onChange={(conversation_id) => set({ conversation_id })} />
        <TextFilter label={t("facts.state_person")} value={filters.actor_id} onChange={(actor_id) => set({ actor_id })} />
      </FilterBar>
      <Listed
        list={list}
        filtered={filtered}
        at={(item) => item.updated_at}
        empty={{ icon: "state", title: t("facts.state_empty"), hint: t("facts.state_empty_hint") }}
      >
        {(items) => (
          <DisclosureList
            label={t("facts.state_title")}
            items={items}
            itemKey={(item) => JSON.stringify([item.scope, item.agent, item.runner_id, item.conversation_id, item.actor, item.subject, item.key])}
            summary={(item) => <Summary item={item} />}
            details={(item) => <Details item={item} />}
          />
        )}
      </Listed>
    </Page>
  );
}

function useAgents(): { value: string; label: string }[] {
  const agents = useQuery({ queryKey: ["agents"], queryFn: ({ signal }) => get<ListPage<Agent>>("/v1/agents", {}, signal) });
  return agents.data?.items.map((agent) => ({ value: agent.name, label: agent.name })) ?? [];
}

function ownerOf(item: StateItem): string {
  const owner = item.conversation_id ?? item.actor?.id ?? item.subject?.id ?? item.agent ?? item.runner_id ?? "";
  return shortId(owner);
}

function Summary({ item }: { item: StateItem }) {
  const t = useT();
  return (
    <>
      <Badge>{t(`facts.scope_${item.scope}`)}</Badge>
      <span className={styles["owner"]} title={ownerOf(item)}>
        {ownerOf(item)}
      </span>
      <span className={styles["grow"]}>
        <strong className="mono">{item.key}</strong> <code className={styles["preview"]}>{previewOf(item)}</code>
      </span>
      <span className={styles["aside"]}>
        v{item.version} · <Time at={item.updated_at} />
      </span>
    </>
  );
}

function previewOf(item: StateItem): string {
  return item.value_truncated ? (item.preview ?? "") : (JSON.stringify(item.value) ?? "");
}

function Details({ item }: { item: StateItem }) {
  const t = useT();
  return (
    <>
      <Facts
        items={[
          [t("facts.agent"), <AgentLink key="agent" name={item.agent} />],
          [t("facts.runner"), item.runner_id ?? "–"],
          ...(item.conversation_id ? [[t("facts.conversation"), <ConversationLink key="c" id={item.conversation_id} />] as [string, React.ReactNode]] : []),
          ...(item.actor ? [[t("facts.state_person"), `${item.actor.type} ${item.actor.id}`] as [string, string]] : []),
          ...(item.subject ? [[t("facts.scope_subject"), `${item.subject.type} ${item.subject.id}`] as [string, string]] : []),
          [t("facts.state_version"), item.version],
          [t("facts.size"), <Bytes key="size" value={item.size_bytes} />],
          [t("facts.state_updated"), <Time key="at" at={item.updated_at} absolute />],
          ...(item.expires_at ? [[t("facts.artifacts_expires"), <Time key="until" at={item.expires_at} absolute />] as [string, React.ReactNode]] : []),
        ]}
      />
      {item.value_truncated ? (
        <>
          <p className="muted">{t("facts.state_truncated")}</p>
          <pre className={styles["quote"]}>{item.preview}</pre>
        </>
      ) : (
        <JsonView value={item.value} />
      )}
    </>
  );
}
