// Lazily loaded Markdown: loaded in parallel with the page's data; texts are plain until then.
import { useSyncExternalStore, type ComponentType } from "react";
import styles from "./markdown.module.css";

interface Props {
  text: string;
  growing?: boolean;
}

/** Texts wait at most this long for the module. */
const PATIENCE_MS = 2_000;

/** Undefined while texts wait for it, null once they stop waiting. */
let loaded: ComponentType<Props> | null | undefined;
const listeners = new Set<() => void>();

function arrived(markdown: ComponentType<Props> | null): void {
  loaded = markdown;
  for (const listener of listeners) listener();
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

/** Lists wait for it before their first row: a text that turns into Markdown shifts everything below. */
export function useMarkdownIsComing(): boolean {
  return useSyncExternalStore(subscribe, () => loaded === undefined);
}

export function LazyMarkdown(props: Props) {
  const Markdown = useSyncExternalStore(subscribe, () => loaded);
  return Markdown ? <Markdown {...props} /> : <div className={styles["plain"]}>{props.text}</div>;
}
