// One stored transcript: newest page first, older pages on demand, with search.
import { useInfiniteQuery } from "@tanstack/react-query";
import { get, path, type Page } from "@/api/client";
import type { TranscriptItem } from "@/api/types";
import { useLanguage, useT } from "@/i18n";
import { Button, ButtonLink, Card, CopyButton, Empty, IconButton, Loaded } from "@/ui";
import { TextFilter } from "./filter-bar";
import { SearchHits } from "./search-hits";
import { TranscriptEntry } from "./transcript-entry";
import styles from "./conversations.module.css";

export interface ConversationReaderProps {
  id: string;
  q: string | undefined;
  onSearch: (q: string) => void;
  onClose: () => void;
}

export function ConversationReader({ id, q, onSearch, onClose }: ConversationReaderProps) {
  const t = useT();
  return (
    <Card
      title={
        <span className={styles["heading"]}>
          <IconButton icon="chevronLeft" size="s" label={t("facts.back_to_list")} onClick={onClose} />
          <span className="truncate" title={id}>
            {id}
          </span>
          <CopyButton text={id} />
        </span>
      }
      actions={
        <>
          <TextFilter search hideLabel label={t("facts.conversations_search_within")} value={q} onChange={onSearch} />
          <ButtonLink href={`/chat/${encodeURIComponent(id)}`} icon="chat">
            {t("facts.conversations_open")}
          </ButtonLink>
        </>
      }
    >
      {q ? <SearchHits q={q} conversation={id} /> : <History id={id} />}
    </Card>
  );
}

function History({ id }: { id: string }) {
  const { t, language } = useLanguage();
  const history = useInfiniteQuery({
    // Texts of cards come from the host.
    queryKey: ["history", id, language],
    queryFn: ({ pageParam, signal }) => get<Page<TranscriptItem>>(path("/v1/conversations/{}/history", id), { limit: 50, cursor: pageParam }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => (page.has_more ? (page.next_cursor ?? undefined) : undefined),
  });
  return (
    <Loaded query={history}>
      {({ pages }) => {
        const items = pages.toReversed().flatMap((page) => page.items);
        if (items.length === 0) return <Empty icon="conversations" title={t("facts.conversations_empty")} />;
        return (
          <div className={styles["history"]}>
            {history.hasNextPage && (
              <Button icon="arrowUp" busy={history.isFetchingNextPage} onClick={() => void history.fetchNextPage()}>
                {t("facts.conversations_older")}
              </Button>
            )}
            <ol className={styles["entries"]}>
              {items.map((item) => (
                <TranscriptEntry key={item.item_id} item={item} />
              ))}
            </ol>
          </div>
        );
      }}
    </Loaded>
  );
}
