// A text of others, drawn as Markdown. Load this module lazily.
import { memo, useEffect, useRef, useState } from "react";
import { elementOf, parse } from "./markdown-read";
import styles from "./markdown.module.css";

/** A text longer than this is read again this often at most while it grows. */
const LONG = 8_000;
const AGAIN_MS = 500;

/** `growing`: the text is not complete, and keeping it would only push others out. */
const Parsed = memo(function Parsed({ text, growing }: { text: string; growing: boolean }) {
  const element = growing ? parse(text) : elementOf(text);
  return <div className={element ? styles["markdown"] : styles["plain"]}>{element ?? text}</div>;
});

export function Markdown({ text, growing = false }: { text: string; growing?: boolean }) {
  return <Parsed text={useSlowed(text, growing && text.length > LONG)} growing={growing} />;
}

/** A text as it was a moment ago, while it is slow. */
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
