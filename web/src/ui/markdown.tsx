// Untrusted text rendered as Markdown. Load this module lazily.
import { memo, useEffect, useRef, useState } from "react";
import { elementOf, parse } from "./markdown-read";
import styles from "./markdown.module.css";

/** A growing text longer than this is parsed at most this often. */
const LONG = 8_000;
const AGAIN_MS = 500;

/** `growing`: the text is incomplete and is not cached. */
const Parsed = memo(function Parsed({ text, growing }: { text: string; growing: boolean }) {
  const element = growing ? parse(text) : elementOf(text);
  return <div className={element ? styles["markdown"] : styles["plain"]}>{element ?? text}</div>;
});

export function Markdown({ text, growing = false }: { text: string; growing?: boolean }) {
  return <Parsed text={useSlowed(text, growing && text.length > LONG)} growing={growing} />;
}

/** Throttles a long, growing text. */
function useSlowed(text: string, slow: boolean): string {
  const [shown, setShown] = useState(text);
  const latest = useRef(text);
  useEffect(() => {
    latest.current = text;
  }, [text]);
  useEffect(() => {
    if (!slow) return;
    const timer = setInterval(() => setShown(latest.current), AGAIN_MS);
    return () => clearInterval(timer);
  }, [slow]);
  if (!slow && shown !== text) setShown(text);
  return slow ? shown : text;
}

export default Markdown;
