// Shared parts of fact lists: states, end of list, and short ids with links.
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useT } from "@/i18n";
import { Button, Card, Empty, ErrorBox, IconButton, Skeleton, Time, type IconName } from "@/ui";
import styles from "./facts.module.css";
import { shortId } from "./short-id";
import type { FactList } from "./use-fact-list";

export interface ListedProps<Item> {
  list: FactList<Item>;
  filtered: boolean;
  empty: { icon: IconName; title: string; hint: string; action?: ReactNode };
  /** Time of the oldest item read. */
  at: (item: Item) => string;
  children: (items: Item[]) => ReactNode;
}

export function Listed<Item>({ list, filtered, empty, at, children }: ListedProps<Item>) {
  const t = useT();
  if (list.isPending && !list.error) {
    return (
      <Card flush>
        <Skeleton lines={6} height={20} />
      </Card>
    );
  }
  if (list.error && list.read === 0) return <ErrorBox error={list.error} onRetry={list.refresh} />;
  const nothing = list.items.length === 0;
  return (
    <>
      <Card flush>
        {nothing && !list.isReading && (
          <Empty
            icon={filtered ? "filter" : empty.icon}
            title={filtered ? t("facts.no_match") : empty.title}
            action={filtered ? undefined : empty.action}
          >
            {filtered ? t("facts.no_match_hint") : empty.hint}
          </Empty>
        )}
        {nothing && list.isReading && <Skeleton lines={3} height={20} />}
        {!nothing && children(list.items)}
      </Card>
      {list.error !== null && list.error !== undefined && <ErrorBox error={list.error} onRetry={list.more} />}
      <ListEnd list={list} filtered={filtered} at={at} />
    </>
  );
}

function ListEnd<Item>({ list, filtered, at }: { list: FactList<Item>; filtered: boolean; at: (item: Item) => string }) {
  const t = useT();
  if (!list.hasMore) return list.items.length > 20 ? <p className={styles["end"]}>{t("facts.end")}</p> : null;
  const short = filtered && list.last !== undefined && list.items.length < list.read;
  return (
    <div className={styles["end"]} aria-live="polite">
      {short && list.last !== undefined && (
        <span>
          {t("facts.searched", { count: list.read })} <Time at={at(list.last)} />
        </span>
      )}
      <Button onClick={list.more} busy={list.isReading}>
        {short ? t("facts.search_further") : t("facts.more")}
      </Button>
    </div>
  );
}

export function RefreshButton({ list }: { list: { refresh: () => void; isReading: boolean } }) {
  const t = useT();
  return <IconButton icon="refresh" variant="secondary" label={t("facts.refresh")} onClick={list.refresh} busy={list.isReading} />;
}

export function RunLink({ id }: { id: string | null | undefined }) {
  if (!id) return <span className="muted">–</span>;
  return (
    <Link href={`/runs/${encodeURIComponent(id)}`} className="mono" title={id}>
      {shortId(id)}
    </Link>
  );
}

export function ConversationLink({ id }: { id: string | null | undefined }) {
  if (!id) return <span className="muted">–</span>;
  return (
    <Link href={`/conversations?id=${encodeURIComponent(id)}`} title={id} className={styles["name"]}>
      {shortId(id)}
    </Link>
  );
}

export function AgentLink({ name }: { name: string | null | undefined }) {
  if (!name) return <span className="muted">–</span>;
  return <Link href={`/agents/${encodeURIComponent(name)}`}>{name}</Link>;
}
