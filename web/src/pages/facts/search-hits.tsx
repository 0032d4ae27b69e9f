// Search results of one conversation or of all, with matches marked.
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { get, path, type Page } from "@/api/client";
import type { SearchHit } from "@/api/types";
import { useT } from "@/i18n";
import { Badge, Card, Empty, Loaded, Time } from "@/ui";
import { pieces } from "./highlight";
import { ConversationLink, RunLink } from "./list-parts";
import styles from "./conversations.module.css";

/** Results of all conversations. */
export function SearchEverywhere({ q }: { q: string }) {
  return (
    <Card>
      <SearchHits q={q} />
    </Card>
  );
}

export function SearchHits({ q, conversation }: { q: string; conversation?: string }) {
  const t = useT();
  const url = conversation === undefined ? "/v1/search" : path("/v1/conversations/{}/search", conversation);
  const hits = useQuery({
    queryKey: ["search", url, q],
    queryFn: ({ signal }) => get<Page<SearchHit>>(url, { q, limit: 100 }, signal),
  });
  return (
    <Loaded query={hits}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty icon="search" title={t("facts.conversations_no_hits", { q })}>
            {t("facts.conversations_no_hits_hint")}
          </Empty>
        ) : (
          <div className="stack">
            <p className="muted" role="status">
              {t("facts.conversations_hits", { q, count: items.length })}
            </p>
            <ol className={styles["entries"]}>
              {items.map((hit) => (
                <Hit key={hit.item_id} hit={hit} everywhere={conversation === undefined} />
              ))}
            </ol>
          </div>
        )
      }
    </Loaded>
  );
}

function OpenInChat({ hit }: { hit: SearchHit }) {
  const t = useT();
  const conversation = encodeURIComponent(hit.conversation_id);
  return <Link href={`/chat/${conversation}?item=${encodeURIComponent(hit.item_id)}`}>{t("facts.conversations_open")}</Link>;
}

function Hit({ hit, everywhere }: { hit: SearchHit; everywhere: boolean }) {
  const t = useT();
  return (
    <li className={styles["entry"]} data-role={hit.role}>
      <div className={styles["entryHead"]}>
        <Badge>{t(`facts.role_${hit.role}`)}</Badge>
        {everywhere && <ConversationLink id={hit.conversation_id} />}
        <span className={styles["about"]}>
          <Time at={hit.created_at} />
        </span>
        <span className={styles["refs"]}>
          <RunLink id={hit.run_id} />
          <OpenInChat hit={hit} />
        </span>
      </div>
      <p className={styles["said"]}>
        {pieces(hit.snippet, hit.highlights ?? []).map((piece, index) => (piece.hit ? <mark key={index}>{piece.text}</mark> : piece.text))}
      </p>
    </li>
  );
}
