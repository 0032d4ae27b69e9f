// The conversations, newest first, with search.
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { Link } from "wouter";
import { ApiError, get, path, type Page } from "@/api/client";
import type { Conversation, SearchHit, TranscriptItem } from "@/api/types";
import { useT } from "@/i18n";
import { Button, ErrorBox, IconButton, IconLink, SearchInput, Skeleton, Time } from "@/ui";
import styles from "./panel.module.css";
import { Snippet } from "./snippet";

const REFRESH_MS = 10_000;

export function ConversationList({ current, onClose }: { current: string; onClose: () => void }) {
  const t = useT();
  const [query, setQuery] = useState("");
  const asked = useDeferredValue(query.trim());
  return (
    <>
      <header className={styles["head"]}>
        <h2>{t("chat.conversations")}</h2>
        <div className="spacer" />
        <IconLink href="/chat" icon="plus" label={t("chat.newConversation")} />
        <span className={styles["close"]}>
          <IconButton icon="close" size="s" label={t("ui.close")} onClick={onClose} />
        </span>
      </header>
      <div className={styles["search"]}>
        <SearchInput
          value={query}
          aria-label={t("chat.searchLabel")}
          placeholder={t("chat.searchPlaceholder")}
          onChange={(event) => setQuery(event.target.value)}
        />
      </div>
      {asked ? <Hits query={asked} current={current} /> : <All current={current} />}
    </>
  );
}

function All({ current }: { current: string }) {
  const t = useT();
  const list = useInfiniteQuery({
    queryKey: ["conversations", "panel"],
    queryFn: ({ pageParam }) => get<Page<Conversation>>("/v1/conversations", { limit: 50, cursor: pageParam }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => (last.has_more ? last.next_cursor : null),
    refetchInterval: REFRESH_MS,
  });
  if (list.error && !list.data) return <ErrorBox error={list.error} onRetry={() => void list.refetch()} />;
  if (!list.data) return <Skeleton lines={6} height={36} />;
  const items = list.data.pages.flatMap((page) => page.items);
  if (items.length === 0) return <p className={styles["none"]}>{t("chat.noConversations")}</p>;
  return (
    <nav className={styles["list"]} aria-label={t("chat.conversations")}>
      {items.map((one) => (
        <Row key={one.conversation_id} conversation={one} current={one.conversation_id === current} />
      ))}
      {list.hasNextPage && (
        <Button size="s" variant="quiet" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {t("ui.loadMore")}
        </Button>
      )}
    </nav>
  );
}

function Row({ conversation, current }: { conversation: Conversation; current: boolean }) {
  const t = useT();
  const id = conversation.conversation_id;
  // A conversation is titled by its first message, which does not change.
  const first = useQuery({
    queryKey: ["conversation", "first", id],
    queryFn: () => get<Page<TranscriptItem>>(path("/v1/conversations/{}/history", id), { direction: "forward", limit: 1 }),
    staleTime: Infinity,
  });
  const title = first.data?.items[0]?.text?.trim().slice(0, 120);
  return (
    <Link href={`/chat/${encodeURIComponent(id)}`} className={styles["row"]} title={id} {...(current ? { "aria-current": "page" as const } : {})}>
      <span className="truncate">{title || (first.isPending ? "…" : t("chat.untitled"))}</span>
      <span className={styles["meta"]}>
        <Time at={conversation.updated_at} />
        <span>{t("chat.items", { count: conversation.items })}</span>
      </span>
    </Link>
  );
}

/** Searches all conversations, or only the open one if the role may not search all. */
async function search(q: string, current: string): Promise<SearchHit[]> {
  try {
    return (await get<{ items: SearchHit[] }>("/v1/search", { q, limit: 40 })).items;
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
    return (await get<{ items: SearchHit[] }>(path("/v1/conversations/{}/search", current), { q, limit: 40 })).items;
  }
}

function Hits({ query, current }: { query: string; current: string }) {
  const t = useT();
  const hits = useQuery({ queryKey: ["search", query, current], queryFn: () => search(query, current), placeholderData: keepPreviousData, retry: false });
  const none = hits.data?.length === 0 || (hits.error instanceof ApiError && hits.error.status === 404);
  if (none) {
    return (
      <p className={styles["none"]}>
        {t("chat.searchNothing", { query })} {t("chat.searchHint")}
      </p>
    );
  }
  if (hits.error) return <ErrorBox error={hits.error} onRetry={() => void hits.refetch()} />;
  if (!hits.data) return <Skeleton lines={5} height={36} />;
  return (
    <nav className={styles["list"]} aria-label={t("chat.searchLabel")}>
      {hits.data.map((hit) => (
        <Link key={hit.item_id} href={`/chat/${encodeURIComponent(hit.conversation_id)}?item=${encodeURIComponent(hit.item_id)}`} className={styles["row"]}>
          <span className={styles["snippet"]}>
            <Snippet text={hit.snippet} highlights={hit.highlights ?? []} />
          </span>
          <span className={styles["meta"]}>
            <Time at={hit.created_at} />
          </span>
        </Link>
      ))}
    </nav>
  );
}
