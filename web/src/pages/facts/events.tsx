// The event log.
import { Link } from "wouter";
import type { EventView } from "@/api/types";
import { useT } from "@/i18n";
import { Badge, ButtonLink, Page, Table, Time, type Column } from "@/ui";
import { EVENT_KINDS, eventKind, eventSentence, type EventKind } from "./event-sentence";
import { ChoiceFilter, FilterBar, TextFilter, useFilters } from "./filter-bar";
import { ConversationLink, Listed, RefreshButton, RunLink } from "./list-parts";
import styles from "./facts.module.css";
import { useFactList } from "./use-fact-list";

const FILTERS = ["conversation_id", "kind"] as const;

export default function EventsPage() {
  const t = useT();
  const { filters, set } = useFilters(FILTERS);
  const { conversation_id, kind } = filters;
  const fits = kind ? (view: EventView) => eventKind(view.event_type) === kind : undefined;
  const list = useFactList<EventView>("/v1/events", { conversation_id }, fits);
  const filtered = Object.keys(filters).length > 0;
  const kinds = EVENT_KINDS.map((name) => ({ value: name, label: t(`facts.events_kind_${name}`) }));
  return (
    <Page title={t("facts.events_title")} subtitle={t("facts.events_lead")} actions={<RefreshButton list={list} />}>
      <FilterBar active={filtered} onClear={() => set({ conversation_id: null, kind: null })}>
        <ChoiceFilter label={t("facts.kind")} value={kind} options={kinds} onChange={(next) => set({ kind: next as EventKind })} />
        <TextFilter label={t("facts.conversation")} value={conversation_id} onChange={(next) => set({ conversation_id: next })} />
      </FilterBar>
      <Listed
        list={list}
        filtered={filtered}
        at={(view) => view.created_at}
        empty={{
          icon: "events",
          title: t("facts.events_empty"),
          hint: t("facts.events_empty_hint"),
          action: <ButtonLink href="/chat">{t("shell.chat")}</ButtonLink>,
        }}
      >
        {(views) => <EventTable views={views} />}
      </Listed>
    </Page>
  );
}

/** Link to an event: ids are unique only per source. */
function hrefOf(view: EventView): string {
  const source = view.source === "api" ? "" : `?source=${encodeURIComponent(view.source)}`;
  return `/events/${encodeURIComponent(view.event_id)}${source}`;
}

function EventTable({ views }: { views: EventView[] }) {
  const t = useT();
  const columns: Column<EventView>[] = [
    { key: "time", header: t("facts.time"), width: "120px", cell: (view) => <span className={styles["when"]}><Time at={view.created_at} /></span> },
    {
      key: "what",
      lead: true,
      header: t("facts.what"),
      cell: (view) => (
        <Link href={hrefOf(view)} className={styles["sentence"]}>
          {eventSentence(t, view)}
        </Link>
      ),
    },
    { key: "kind", header: t("facts.kind"), width: "180px", wideOnly: true, cell: (view) => <code className="muted">{view.event_type}</code> },
    { key: "conversation", header: t("facts.conversation"), width: "170px", cell: (view) => <ConversationLink id={view.conversation_id} /> },
    { key: "run", header: t("facts.run"), width: "140px", wideOnly: true, cell: (view) => <Run view={view} /> },
  ];
  return <Table label={t("facts.events_title")} columns={columns} rows={views} rowKey={(view) => String(view.seq)} href={hrefOf} />;
}

function Run({ view }: { view: EventView }) {
  const t = useT();
  if (!view.run_id && view.source !== "host") return <Badge tone="warn">{t("facts.event_unbound")}</Badge>;
  return <RunLink id={view.run_id} />;
}
