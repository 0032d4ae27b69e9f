// One line of the timeline: what happened, when, how long, and behind it the details.
import { memo } from "react";
import { useLanguage } from "@/i18n";
import { durationText } from "@/ui/format-text";
import { Icon, type IconName } from "@/ui";
import { EntryDetail } from "./entry-detail";
import { Inline } from "./inline";
import { said } from "./logic/say";
import type { Entry, EntryKind } from "./logic/timeline";
import { barOf, type Span } from "./logic/waterfall";
import styles from "./timeline.module.css";

const ICONS: Record<EntryKind, IconName> = {
  event: "events", binding: "agents", grant: "key", wait: "clock", model: "model", tool: "tool", call: "runners", text: "chat", state: "state",
  artifact: "file", action: "arrowRight", approval: "approvals", restarted: "refresh", diagnostic: "warning", other: "more", live: "clock", end: "check", delivery: "upload",
};

export interface EntryRowProps {
  entry: Entry;
  span: Span | undefined;
  /** Only entries that go on look at it. */
  now: number;
  isOpen: boolean;
  onToggle: (id: string) => void;
}

export const EntryRow = memo(function EntryRow({ entry, span, now, isOpen, onToggle }: EntryRowProps) {
  const { t, language } = useLanguage();
  const bar = span === undefined ? undefined : barOf(entry, span, now);
  const end = entry.open === true ? now : entry.end;
  const took = entry.start === undefined || end === undefined ? undefined : end - entry.start;
  const offset = entry.start === undefined || span === undefined ? undefined : entry.start - span.from;
  const canOpen = entry.detail.type !== "none" || entry.notes.length > 0;
  const isLoud = entry.tone === "bad" || entry.tone === "warn" || entry.kind === "approval";
  const icon = entry.kind === "end" && entry.tone !== "ok" ? (entry.tone === "bad" ? "error" : "stop") : ICONS[entry.kind];
  return (
    <div className={`${styles["entry"]} ${styles[entry.tone]}`} data-kind={entry.kind} data-tone={entry.tone}>
      <button type="button" className={styles["line"]} aria-expanded={canOpen ? isOpen : undefined} disabled={!canOpen} onClick={() => onToggle(entry.id)}>
        <span className={styles["icon"]}>
          <Icon name={icon} size={16} />
        </span>
        <span className={styles["words"]}>
          <span className={styles["title"]}>{said(t, entry.title)}</span>
          {entry.hint !== undefined && entry.hint !== "" && <span className={styles["hint"]}><Inline text={entry.hint} /></span>}
        </span>
        <span className={styles["offset"]}>{offset === undefined ? "" : `+${durationText(Math.max(0, offset), language)}`}</span>
        <span className={styles["track"]} aria-hidden="true">
          {bar && <span className={styles["bar"]} style={{ left: `${String(bar.left)}%`, width: `${String(bar.width)}%` }} />}
        </span>
        <span className={styles["took"]}>{took === undefined || took < 1 ? "" : durationText(took, language)}</span>
        <span className={`${styles["chevron"]} ${isOpen ? styles["turned"] : ""}`}>{canOpen && <Icon name="chevronRight" size={16} />}</span>
      </button>
      {(isOpen || isLoud) && entry.notes.length > 0 && (
        <div className={styles["notes"]}>
          {entry.notes.map((note, index) => (
            <p key={index} className={index === 0 ? "" : styles["todo"]}><Inline text={said(t, note)} /></p>
          ))}
        </div>
      )}
      {isOpen && <EntryDetail entry={entry} />}
    </div>
  );
});
