// Markdown for pages that want it soon: it is loaded beside what the page reads, and texts stay plain until it is there.
import { useSyncExternalStore, type ComponentType } from "react";
import styles from "./markdown.module.css";

interface Props {
  text: string;
  growing?: boolean;
}

/** For longer than this no text waits for how it looks. */
const PATIENCE_MS = 2_000;

/** Undefined while texts wait for it, null when they do not. */
let loaded: ComponentType<Props> | null | undefined;
const listeners = new Set<() => void>();

function arrived(markdown: ComponentType<Props> | null): void {
  loaded = markdown;
  for (const tell of listeners) tell();
}
import("./markdown").then(
  (module) => arrived(module.Markdown),
  () => arrived(null),
);

setTimeout(() => {
  if (loaded === undefined) arrived(null);
}, PATIENCE_MS);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Lists wait for it with their first row: a text that turns into Markdown moves everything below. */
export function useMarkdownIsComing(): boolean {
  return useSyncExternalStore(subscribe, () => loaded === undefined);
}

export function LateMarkdown(props: Props) {
  const Markdown = useSyncExternalStore(subscribe, () => loaded);
  return Markdown ? <Markdown {...props} /> : <div className={styles["plain"]}>{props.text}</div>;
}
