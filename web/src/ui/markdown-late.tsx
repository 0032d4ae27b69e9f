// Markdown for pages that want it soon: it is loaded beside what the page reads, and texts stay plain if it cannot be.
import { useSyncExternalStore, type ComponentType } from "react";
import styles from "./markdown.module.css";

interface Props {
  text: string;
  growing?: boolean;
}

/** Undefined while it is loaded, null when that failed. */
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
