// Talking to agents: conversations at the side, one of them in the middle.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useLocation, useParams, useSearchParams } from "wouter";
import { get, type Page } from "@/api/client";
import { newId } from "@/api/new-id";
import type { Agent } from "@/api/types";
import { useT } from "@/i18n";
import { lastPart } from "@/pages/facts/filters";
import { Empty, ErrorBox, Skeleton, useTitle } from "@/ui";
import styles from "./chat.module.css";
import { ConversationList } from "./conversation-list";
import { ConversationView } from "./conversation-view";

export default function ChatPage() {
  const t = useT();
  useTitle(t("chat.title"));
  const { conversation } = useParams<{ conversation?: string }>();
  const [query] = useSearchParams();
  const target = query.get("item");
  const [location] = useLocation();
  const [fresh, setFresh] = useState(newConversation);
  const [panel, setPanel] = useState(false);
  const agents = useQuery({ queryKey: ["agents"], queryFn: () => get<Page<Agent>>("/v1/agents") });
  // Whoever comes back to the bare address begins anew, unless that is what was just left.
  const [wasFresh, setWasFresh] = useState(conversation === undefined);
  useEffect(() => {
    if (conversation === undefined && !wasFresh) setFresh(newConversation());
    setWasFresh(conversation === undefined);
  }, [conversation, wasFresh]);
  useEffect(() => setPanel(false), [location]);

  const id = conversation === undefined ? fresh : lastPart(window.location.pathname);
  return (
    <div className={styles["chat"]}>
      <aside className={`${styles["panel"]} ${panel ? styles["open"] : ""}`} aria-label={t("chat.conversations")}>
        <ConversationList current={id} onClose={() => setPanel(false)} />
      </aside>
      {panel && <div className={styles["scrim"]} onClick={() => setPanel(false)} />}
      <section className={styles["main"]}>
        {agents.data ? (
          agents.data.items.length > 0 ? (
            <ConversationView
              // A place in it that is asked for is in what is kept: that is read anew.
              key={`${id} ${target ?? ""}`}
              id={id}
              isNew={conversation === undefined}
              agents={agents.data.items}
              target={target}
              onPanel={() => setPanel(true)}
            />
          ) : (
            <Empty icon="agents" title={t("chat.noAgents")}>
              {t("chat.noAgentsHint")}
            </Empty>
          )
        ) : agents.error ? (
          <ErrorBox error={agents.error} onRetry={() => void agents.refetch()} />
        ) : (
          <Skeleton lines={6} />
        )}
      </section>
    </div>
  );
}

function newConversation(): string {
  return `chat-${newId()}`;
}
