// The chat page: conversations at the side, one of them in the middle.
import { useEffect, useState } from "react";
import { useLocation, useParams, useSearchParams } from "wouter";
import { newId } from "@/api/new-id";
import { useT } from "@/i18n";
import { seesApprovals, useSession } from "@/pages/approvals/use-session";
import { lastPart } from "@/pages/facts/filters";
import { Empty, ErrorBox, Skeleton, useTitle } from "@/ui";
import styles from "./chat.module.css";
import { ConversationList } from "./conversation-list";
import { ConversationView } from "./conversation-view";
import { useChatAgents } from "./use-chat-agents";

export default function ChatPage() {
  const t = useT();
  useTitle(t("chat.title"));
  const { conversation } = useParams<{ conversation?: string }>();
  const [query] = useSearchParams();
  const target = query.get("item");
  const [location] = useLocation();
  const [fresh, setFresh] = useState(newConversation);
  const [panel, setPanel] = useState(false);
  const session = useSession();
  const agents = useChatAgents(session.data);
  const role = session.data?.role;
  // Opening the bare URL again starts a new conversation, unless that is the one just left.
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
        {agents.data && !session.isPending ? (
          agents.data.length > 0 ? (
            <ConversationView
              // A linked entry is in the stored history: reload it.
              key={`${id} ${target ?? ""}`}
              id={id}
              isNew={conversation === undefined}
              agents={agents.data}
              target={target}
              mayWrite={role !== "reader"}
              showsApprovals={seesApprovals(session.data)}
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
