// One entry of the event log.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { get, path } from "@/api/client";
import type { EventView } from "@/api/types";
import { useT } from "@/i18n";
import { Card, CopyButton, Facts, Icon, JsonView, Loaded, Page, Time } from "@/ui";
import { eventActor, eventFiles, eventSentence, eventText, replayOf } from "./event-sentence";
import { useFilters } from "./filter-bar";
import { lastPart } from "./filters";
import { ConversationLink, RunLink } from "./list-parts";
import { shortId } from "./short-id";
import styles from "./facts.module.css";

export default function EventPage() {
  const t = useT();
  useLocation();
  const id = lastPart(window.location.pathname);
  const { filters } = useFilters(["source"] as const);
  const event = useQuery({
    queryKey: ["event", id, filters.source],
    queryFn: ({ signal }) => get<EventView>(path("/v1/events/{}", id), { source: filters.source }, signal),
  });
  return (
    <Page title={t("facts.event_title")} back={{ href: "/events", label: t("facts.events_title") }} subtitle={<Id id={id} />}>
      <Loaded query={event}>{(view) => <Event view={view} />}</Loaded>
    </Page>
  );
}

function Id({ id }: { id: string }) {
  return (
    <span className="row">
      <code>{id}</code>
      <CopyButton text={id} />
    </span>
  );
}

function EventLink({ id }: { id: string }) {
  return <Link href={`/events/${encodeURIComponent(id)}`}>{shortId(id)}</Link>;
}

function Event({ view }: { view: EventView }) {
  const t = useT();
  const original = replayOf(view);
  return (
    <>
      <Card title={eventSentence(t, view)}>
        <Facts
          items={[
            [t("facts.kind"), <code key="type">{view.event_type}</code>],
            [t("facts.time"), <Time key="at" at={view.created_at} absolute />],
            [t("facts.source"), view.source],
            [t("facts.event_trigger"), typeof view.trigger === "string" ? view.trigger : "–"],
            [t("facts.from"), eventActor(view) ?? "–"],
            [t("facts.conversation"), <ConversationLink key="conversation" id={view.conversation_id} />],
            [t("facts.event_position"), view.conversation_seq ?? "–"],
            [t("facts.run"), <RunOf key="run" view={view} />],
            ...(original ? [[t("facts.event_replay"), <EventLink key="replay" id={original} />] as [string, ReactNode]] : []),
          ]}
        />
      </Card>
      <Input view={view} />
      <Card title={t("facts.raw")}>
        {view.event === null || view.event === undefined ? <p className="muted">{t("facts.event_gone")}</p> : null}
        <JsonView value={view} openDepth={3} />
      </Card>
    </>
  );
}

function RunOf({ view }: { view: EventView }) {
  const t = useT();
  if (!view.run_id && view.source !== "host") return <>{t("facts.event_unbound")}</>;
  return <RunLink id={view.run_id} />;
}

function Input({ view }: { view: EventView }) {
  const t = useT();
  const text = eventText(view);
  const files = eventFiles(view);
  if (!text && files.length === 0) return null;
  return (
    <Card title={t("facts.event_input")}>
      <div className="stack">
        {text && <blockquote className={styles["quote"]}>{text}</blockquote>}
        {files.length > 0 && (
          <div className={styles["links"]}>
            {files.map((file) => (
              <Link key={file.artifact_id} href={`/artifacts?id=${encodeURIComponent(file.artifact_id)}`} className="row">
                <Icon name="file" size={16} />
                {file.name ?? file.artifact_id}
              </Link>
            ))}
          </div>
        )}
      </div>
    </Card>
  );
}
