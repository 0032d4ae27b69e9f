// The timeline: collapsible sections and entries, rendered virtually.
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useT } from "@/i18n";
import { Button, Card, Empty, Icon } from "@/ui";
import { EntryRow } from "./entry-row";
import { SECTIONS, type Entry, type Section } from "./logic/timeline";
import { spanOf } from "./logic/waterfall";
import styles from "./timeline.module.css";

type Row = { type: "section"; section: Section; count: number } | { type: "entry"; entry: Entry };

const TICK_MS = 400;
const LINE_PX = 40;

export function TimelineView({ entries, isRunning }: { entries: Entry[]; isRunning: boolean }) {
  const t = useT();
  const [closed, setClosed] = useState<ReadonlySet<Section>>(new Set());
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [onlyProblems, setOnlyProblems] = useState(false);
  const now = useNow(isRunning);
  const span = useMemo(() => spanOf(entries, now), [entries, now]);
  const shown = useMemo(() => (onlyProblems ? entries.filter((entry) => entry.tone === "bad" || entry.tone === "warn") : entries), [entries, onlyProblems]);
  const rows = useMemo(() => rowsOf(shown, closed), [shown, closed]);
  const toggle = useCallback((id: string) => setOpen((before) => toggled(before, id)), []);
  const problems = useMemo(() => entries.filter((entry) => entry.tone === "bad" || entry.tone === "warn").length, [entries]);
  return (
    <Card flush>
      <div className={styles["toolbar"]}>
        <div className={styles["choices"]} role="group" aria-label={t("runs.show.filter")}>
          <Button size="s" variant={onlyProblems ? "quiet" : "secondary"} aria-pressed={!onlyProblems} onClick={() => setOnlyProblems(false)}>
            {t("runs.show.all")} <span className="muted nums">{entries.length}</span>
          </Button>
          <Button size="s" variant={onlyProblems ? "secondary" : "quiet"} aria-pressed={onlyProblems} onClick={() => setOnlyProblems(true)}>
            {t("runs.show.problems")} <span className="muted nums">{problems}</span>
          </Button>
        </div>
        <span className="spacer" />
        <Button size="s" variant="quiet" onClick={() => setOpen(open.size > 0 ? new Set() : new Set(shown.map((entry) => entry.id)))}>
          {open.size > 0 ? t("runs.show.collapse") : t("runs.show.expand")}
        </Button>
      </div>
      {shown.length === 0 ? (
        <Empty icon="check" title={t("runs.show.noProblems")} />
      ) : (
        <VirtualRows rows={rows}>
          {(row) =>
            row.type === "section" ? (
              <SectionRow section={row.section} count={row.count} isClosed={closed.has(row.section)} onToggle={() => setClosed((before) => toggled(before, row.section))} />
            ) : (
              <EntryRow entry={row.entry} span={span} now={row.entry.open === true ? now : 0} isOpen={open.has(row.entry.id)} onToggle={toggle} />
            )
          }
        </VirtualRows>
      )}
    </Card>
  );
}

function SectionRow({ section, count, isClosed, onToggle }: { section: Section; count: number; isClosed: boolean; onToggle: () => void }) {
  const t = useT();
  return (
    <h2 className={styles["section"]}>
      <button type="button" aria-expanded={!isClosed} onClick={onToggle}>
        <span className={`${styles["chevron"]} ${isClosed ? "" : styles["turned"]}`}>
          <Icon name="chevronRight" size={14} />
        </span>
        {t(`runs.section.${section}`)}
        {count > 1 && <span className={styles["count"]}>{count}</span>}
      </button>
    </h2>
  );
}

function VirtualRows({ rows, children }: { rows: Row[]; children: (row: Row) => React.ReactNode }) {
  const frame = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    // Content above may grow while results are loaded.
    const measure = () => {
      const top = (frame.current?.getBoundingClientRect().top ?? 0) + window.scrollY;
      setMargin((before) => (Math.abs(before - top) > 1 ? top : before));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  // Must be stable: a new function makes the list measure all rows again.
  const getItemKey = useCallback((index: number) => keyOf(rows[index]), [rows]);
  const list = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => LINE_PX,
    getItemKey,
    overscan: 6,
    scrollMargin: margin,
  });
  return (
    <div ref={frame} className={styles["rows"]} style={{ height: list.getTotalSize() }}>
      {list.getVirtualItems().map((item) => {
        const row = rows[item.index];
        return (
          <div key={item.key} ref={list.measureElement} data-index={item.index} className={styles["row"]} style={{ transform: `translateY(${String(item.start - margin)}px)` }}>
            {row && children(row)}
          </div>
        );
      })}
    </div>
  );
}

function keyOf(row: Row | undefined): string {
  if (row === undefined) return "";
  return row.type === "section" ? `section-${row.section}` : row.entry.id;
}

function rowsOf(entries: Entry[], closed: ReadonlySet<Section>): Row[] {
  return SECTIONS.flatMap((section): Row[] => {
    const own = entries.filter((entry) => entry.section === section);
    if (own.length === 0) return [];
    const head: Row = { type: "section", section, count: own.length };
    return closed.has(section) ? [head] : [head, ...own.map((entry): Row => ({ type: "entry", entry }))];
  });
}

function toggled<T>(set: ReadonlySet<T>, value: T): ReadonlySet<T> {
  const next = new Set(set);
  if (!next.delete(value)) next.add(value);
  return next;
}

/** The current time, ticking only while the run is active. */
function useNow(moves: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!moves) return;
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, [moves]);
  return now;
}
