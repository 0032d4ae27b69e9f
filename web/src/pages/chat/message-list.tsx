// The entries of a conversation: virtual, following the end while it grows, loading older pages when scrolled up.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useEffectEvent, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useT } from "@/i18n";
import { Button, ErrorBox, Skeleton } from "@/ui";
import { useMarkdownIsComing } from "@/ui/markdown-late";
import type { Entry } from "./entry";
import { EntryView } from "./entry-view";
import styles from "./list.module.css";
import { OWN } from "./live-run";
import type { Thread, ThreadView } from "./thread";
import { Working } from "./working";

/** Distance from the top at which older pages are loaded: half a second of scrolling. */
const NEAR_TOP_PX = 4_000;
const AT_END_PX = 80;
/** Maximum pages loaded to find a linked entry. */
const PAGES_TO_FIND = 60;
/** Texts above the visible part that are parsed in advance. */
const TEXTS_AHEAD = 200;

interface MessageListProps {
  thread: Thread;
  view: ThreadView;
  target: string | null;
}

export function MessageList(props: MessageListProps) {
  const { thread, view } = props;
  const isComing = useMarkdownIsComing();
  if (view.loading || isComing) return <div className={styles["list"]}><Skeleton lines={8} /></div>;
  if (view.error && view.entries.length === 0) {
    return <div className={styles["problem"]}><ErrorBox error={view.error} onRetry={() => void thread.load()} /></div>;
  }
  return <Entries {...props} />;
}

function Entries({ thread, view, target }: MessageListProps) {
  const t = useT();
  const scroll = useRef<HTMLDivElement>(null);
  const { entries } = view;
  const [atEnd, setAtEnd] = useState(true);
  // Must be stable: a new function makes the list measure all rows again.
  const getItemKey = useCallback((index: number) => entries[index]?.id ?? index, [entries]);
  const list = useVirtualizer({
    count: entries.length,
    getScrollElement: () => scroll.current,
    estimateSize: (index) => heightOf(entries[index]),
    getItemKey,
    overscan: 6,
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: AT_END_PX,
    paddingStart: 56,
    paddingEnd: 24,
  });
  const found = useTarget(thread, view, target, (index) => list.scrollToIndex(index, { align: "center" }));

  const wasEmpty = useRef(true);
  useLayoutEffect(() => {
    if (wasEmpty.current && entries.length > 0 && target === null) list.scrollToEnd();
    wasEmpty.current = entries.length === 0;
  }, [entries.length, list, target]);

  // A sent message scrolls into view.
  const sent = useMemo(() => lastSent(entries), [entries]);
  const known = useRef<string | null | undefined>(undefined);
  useLayoutEffect(() => {
    if (known.current !== undefined && sent !== null && sent !== known.current) list.scrollToEnd();
    known.current = sent;
  }, [sent, list]);

  const onScroll = () => {
    const element = scroll.current;
    if (!element) return;
    setAtEnd(element.scrollHeight - element.scrollTop - element.clientHeight < AT_END_PX);
    if (element.scrollTop < NEAR_TOP_PX && !view.error) void thread.loadOlder();
  };
  const oldest = entries[0]?.id;
  const above = useEffectEvent(() => textsAbove(entries, list.range?.startIndex ?? entries.length));
  useEffect(() => {
    if (oldest === undefined) return;
    const texts = above();
    void import("@/ui/markdown-read").then(({ readAhead }) => readAhead(texts));
  }, [oldest]);
  // A first page that does not fill the screen cannot be scrolled: load more.
  useEffect(() => {
    const element = scroll.current;
    if (element && view.hasOlder && !view.loadingOlder && !view.error && element.scrollHeight <= element.clientHeight + NEAR_TOP_PX) void thread.loadOlder();
  }, [thread, view]);

  return (
    <div className={styles["wrap"]}>
      <div ref={scroll} className={styles["list"]} onScroll={onScroll} role="log" aria-live="off" aria-label={t("chat.messages")} tabIndex={0}>
        <div style={{ height: list.getTotalSize(), position: "relative" }}>
          <div className={styles["older"]}>
            <Older view={view} onAgain={() => void thread.loadOlder()} />
          </div>
          {list.getVirtualItems().map((item) => {
            const entry = entries[item.index] as Entry;
            return (
              <div
                key={item.key}
                ref={list.measureElement}
                data-index={item.index}
                className={found === entry.id ? styles["found"] : ""}
                style={{ position: "absolute", top: 0, left: 0, width: "100%", transform: `translateY(${item.start}px)` }}
              >
                <EntryView entry={entry} isLastOfRun={endsTurn(entries, item.index, view)} />
              </div>
            );
          })}
        </div>
        <Working active={view.active} />
      </div>
      {!atEnd && (
        <Button className={styles["newest"] ?? ""} size="s" icon="arrowDown" onClick={() => list.scrollToEnd({ behavior: "smooth" })}>
          {t("chat.toNewest")}
        </Button>
      )}
    </div>
  );
}

/** Content above the first entry. */
function Older({ view, onAgain }: { view: ThreadView; onAgain: () => void }) {
  const t = useT();
  if (!view.hasOlder) return t("chat.conversationStart");
  if (!view.error) return t(view.loadingOlder ? "chat.olderLoading" : "chat.olderMore");
  return (
    <Button size="s" icon="refresh" onClick={onAgain}>
      {t("chat.olderFailed")}
    </Button>
  );
}

/** The newest message sent from here. */
function lastSent(entries: Entry[]): string | null {
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const entry = entries[index];
    if (entry?.kind === "user" && entry.eventId?.startsWith(OWN)) return entry.eventId;
  }
  return null;
}

/** Answers before an entry, nearest first. */
function textsAbove(entries: Entry[], end: number): string[] {
  const texts: string[] = [];
  for (let index = end - 1; index >= 0 && texts.length < TEXTS_AHEAD; index -= 1) {
    const entry = entries[index];
    if (entry?.kind === "answer") texts.push(entry.text);
  }
  return texts;
}

/** Estimated height of an entry until it is rendered. */
function heightOf(entry: Entry | undefined): number {
  if (!entry) return 60;
  if (entry.kind === "tool") return entry.card ? 260 : 52;
  const text = "text" in entry ? entry.text : "";
  return 56 + Math.ceil(text.length / 90) * 24;
}

/** The last entry of an agent's turn, once the turn has ended. */
function endsTurn(entries: Entry[], index: number, view: ThreadView): boolean {
  const entry = entries[index];
  if (!entry || entry.kind === "user" || entry.kind === "error" || !entry.runId) return false;
  if (view.active.some((run) => run.hostRunId === entry.runId)) return false;
  const next = entries[index + 1];
  return !next || next.runId !== entry.runId || next.kind === "user";
}

/** Loads older pages until the linked entry is found, and scrolls to it. */
function useTarget(thread: Thread, view: ThreadView, target: string | null, show: (index: number) => void): string | null {
  const [found, setFound] = useState<string | null>(null);
  const pages = useRef(0);
  useEffect(() => {
    if (!target || found === target || view.loadingOlder) return;
    const index = view.entries.findIndex((entry) => entry.id === target);
    if (index >= 0) {
      setFound(target);
      show(index);
    } else if (view.hasOlder && !view.error && pages.current < PAGES_TO_FIND) {
      pages.current += 1;
      void thread.loadOlder();
    }
  }, [thread, view, target, found, show]);
  return found;
}
