// Conversations: the list, one transcript, and search.
import { Link } from "wouter";
import type { Conversation } from "@/api/types";
import { useT } from "@/i18n";
import { ButtonLink, Card, Empty, Page, Time } from "@/ui";
import { ConversationReader } from "./conversation-reader";
import { TextFilter, useFilters } from "./filter-bar";
import { withFilters } from "./filters";
import { Listed, RefreshButton } from "./list-parts";
import { SearchEverywhere } from "./search-hits";
import { shortId } from "./short-id";
import styles from "./conversations.module.css";
import { useFactList } from "./use-fact-list";

export default function ConversationsPage() {
  const t = useT();
  const { filters, set } = useFilters(["id", "q"] as const);
  const { id, q } = filters;
  const list = useFactList<Conversation>("/v1/conversations", {});
  const everywhere = q && !id;
  return (
    <Page title={t("facts.conversations_title")} subtitle={t("facts.conversations_lead")} actions={<RefreshButton list={list} />}>
      <div className={styles["panes"]} data-reading={id ? "one" : q ? "all" : "none"}>
        <div className={styles["list"]}>
          {!id && <TextFilter search hideLabel label={t("facts.conversations_search")} value={q} onChange={(next) => set({ q: next })} />}
          <div className={styles["listBody"]}>
            <Listed
              list={list}
              filtered={false}
              at={(conversation) => conversation.updated_at}
              empty={{
                icon: "conversations",
                title: t("facts.conversations_empty"),
                hint: t("facts.conversations_empty_hint"),
                action: <ButtonLink href="/chat">{t("shell.chat")}</ButtonLink>,
              }}
            >
              {(conversations) => <ConversationList conversations={conversations} chosen={id} />}
            </Listed>
          </div>
        </div>
        <div className={styles["reader"]}>
          {id && <ConversationReader key={id} id={id} q={q} onSearch={(next) => set({ q: next })} onClose={() => set({ id: null, q: null })} />}
          {everywhere && <SearchEverywhere q={q} />}
          {!id && !q && (
            <Card>
              <Empty icon="conversations" title={t("facts.conversations_pick")} />
            </Card>
          )}
        </div>
      </div>
    </Page>
  );
}

function ConversationList({ conversations, chosen }: { conversations: Conversation[]; chosen: string | undefined }) {
  const t = useT();
  return (
    <ul className={styles["names"]}>
      {conversations.map(({ conversation_id: id, items, updated_at }) => (
        <li key={id}>
          <Link href={`/conversations?${withFilters("", { id })}`} {...(id === chosen ? { "aria-current": "true" as const } : {})}>
            <span className={styles["name"]} title={id}>
              {shortId(id)}
            </span>
            <span className={styles["about"]}>
              {t("facts.conversations_items", { count: items })} · <Time at={updated_at} />
            </span>
          </Link>
        </li>
      ))}
    </ul>
  );
}
