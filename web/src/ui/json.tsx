// JSON as a collapsible tree or raw; long lists and texts are truncated first.
import { useState } from "react";
import type { Json } from "@/api/types";
import { visibleText } from "@/api/visible";
import { useT } from "@/i18n";
import { Button } from "./button";
import { CopyButton } from "./copy";
import { Icon } from "./icons";
import styles from "./json.module.css";

const ENTRIES_AT_ONCE = 100;
const TEXT_AT_ONCE = 2000;
const RAW_AT_ONCE = 200_000;

export function JsonView({ value, openDepth = 2, raw: startRaw = false }: { value: unknown; openDepth?: number; raw?: boolean }) {
  const t = useT();
  const [raw, setRaw] = useState(startRaw);
  const text = JSON.stringify(value, null, 2) ?? "undefined";
  return (
    <div className={styles["view"]}>
      <div className={styles["bar"]}>
        <Button size="s" variant="quiet" aria-pressed={raw} onClick={() => setRaw(!raw)}>
          {raw ? t("ui.tree") : t("ui.raw")}
        </Button>
        <CopyButton text={text} />
      </div>
      {raw ? <RawText text={text} /> : <div className={styles["tree"]}><Node value={value as Json} depth={0} openDepth={openDepth} /></div>}
    </div>
  );
}

function RawText({ text }: { text: string }) {
  const t = useT();
  const [all, setAll] = useState(false);
  const cut = !all && text.length > RAW_AT_ONCE;
  return (
    <pre className={styles["raw"]} tabIndex={0}>
      {cut ? text.slice(0, RAW_AT_ONCE) : text}
      {cut && <Button size="s" onClick={() => setAll(true)}>{t("ui.showAll")}</Button>}
    </pre>
  );
}

function Node({ name, value, depth, openDepth }: { name?: string; value: Json; depth: number; openDepth: number }) {
  const [open, setOpen] = useState(depth < openDepth);
  const label = name === undefined ? null : <span className={styles["key"]}>{visibleText(name)}: </span>;
  if (value === null || typeof value !== "object") {
    return <div className={styles["line"]}>{label}<Leaf value={value} /></div>;
  }
  const size = Array.isArray(value) ? value.length : Object.keys(value).length;
  const brackets = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (size === 0) return <div className={styles["line"]}>{label}{brackets.join("")}</div>;
  return (
    <div>
      <button type="button" className={styles["toggle"]} aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className={open ? styles["opened"] : styles["closed"]}><Icon name="chevronRight" size={12} /></span>
        {label}
        <span className={styles["count"]}>{`${brackets[0]}${open ? "" : ` ${size} ${brackets[1]}`}`}</span>
      </button>
      {open && <Entries value={value} depth={depth + 1} openDepth={openDepth} />}
    </div>
  );
}

function Entries({ value, depth, openDepth }: { value: Json[] | { [key: string]: Json }; depth: number; openDepth: number }) {
  const t = useT();
  const [shown, setShown] = useState(ENTRIES_AT_ONCE);
  const entries = Object.entries(value);
  return (
    <div className={styles["entries"]}>
      {entries.slice(0, shown).map(([key, child]) => (
        <Node key={key} name={key} value={child} depth={depth} openDepth={openDepth} />
      ))}
      {entries.length > shown && (
        <Button size="s" variant="quiet" onClick={() => setShown(shown + 10 * ENTRIES_AT_ONCE)}>
          {t("ui.itemsMore", { count: entries.length - shown })}
        </Button>
      )}
    </div>
  );
}

function Leaf({ value }: { value: null | boolean | number | string }) {
  const t = useT();
  const [all, setAll] = useState(false);
  if (typeof value !== "string") return <span className={styles["literal"]}>{String(value)}</span>;
  const cut = !all && value.length > TEXT_AT_ONCE;
  return (
    <span className={styles["string"]}>
      {`"${cut ? value.slice(0, TEXT_AT_ONCE) : value}"`}
      {cut && <Button size="s" variant="quiet" onClick={() => setAll(true)}>{t("ui.showAll")}</Button>}
    </span>
  );
}
