// The thread of the shown conversation, refreshed with changes from elsewhere.
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useLanguage } from "@/i18n";
import { Thread, type Rights, type ThreadView } from "./thread";

const REFRESH_MS = 5_000;

/** Needs a component keyed by the conversation. */
export function useThread(id: string, isNew: boolean, rights: Rights): { thread: Thread; view: ThreadView } {
  // Evaluated once: the first message makes the conversation known.
  const [thread] = useState(() => new Thread(id, isNew, rights));
  useEffect(() => {
    thread.open();
    const timer = setInterval(() => document.visibilityState === "visible" && void thread.refresh(), REFRESH_MS);
    return () => {
      clearInterval(timer);
      thread.close();
    };
  }, [thread]);
  const { language } = useLanguage();
  const worded = useRef(language);
  useEffect(() => {
    if (worded.current === language) return;
    worded.current = language;
    void thread.reword();
  }, [thread, language]);
  return { thread, view: useSyncExternalStore(thread.subscribe, thread.view) };
}
