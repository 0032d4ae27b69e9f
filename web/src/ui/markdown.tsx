// Markdown of others: no HTML, no script, nothing loaded from elsewhere. Load this module lazily.
import { memo, useEffect, useRef, useState, type ReactElement } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { useT } from "@/i18n";
import { Code } from "./code";
import { Icon } from "./icons";
import { linkTarget } from "./links";
import { isReadable } from "./markdown-guard";
import styles from "./markdown.module.css";

const plugins = [remarkGfm];

function SafeLink({ href, children }: { href?: string | undefined; children?: React.ReactNode }) {
  const t = useT();
  const target = linkTarget(href, window.location.origin);
  if (!target) return <span>{children}</span>;
  if (!target.foreign) return <a href={target.href}>{children}</a>;
  return (
    <a href={target.href} target="_blank" rel="noopener noreferrer nofollow" title={t("ui.linkForeign", { host: target.host })}>
      {children}
    </a>
  );
}

/** Pictures are never fetched from a text: they become a link to look at. */
function SafeImage({ src, alt }: { src?: unknown; alt?: string | undefined }) {
  const t = useT();
  const target = linkTarget(typeof src === "string" ? src : undefined, window.location.origin);
  const words = alt || (target ? t("ui.imageForeign", { host: target.host }) : "");
  return (
    <span className={styles["image"]}>
      <Icon name="image" size={14} />
      {target ? <SafeLink href={target.href}>{words}</SafeLink> : words}
    </span>
  );
}

const components: Components = {
  a: ({ href, children }) => <SafeLink href={href}>{children}</SafeLink>,
  img: ({ src, alt }) => <SafeImage src={src} alt={alt} />,
  pre: ({ children }) => <>{children}</>,
  code: ({ className, children }) => {
    const text = String(children ?? "");
    const language = /language-([\w+#-]+)/.exec(className ?? "")?.[1];
    if (language || text.includes("\n")) return <Code text={text.replace(/\n$/, "")} {...(language ? { language } : {})} />;
    return <code>{children}</code>;
  },
  table: ({ children }) => (
    <div className={styles["table"]} tabIndex={0}>
      <table>{children}</table>
    </div>
  ),
};

/** Texts that were read before; rows of long lists come and go while one scrolls. */
const READ_MAX = 400;
const read = new Map<string, ReactElement | null>();

/** A text longer than this is read again this often at most while it grows. */
const LONG = 8_000;
const AGAIN_MS = 500;

/** Nothing where a text is better left as it is. */
function parse(text: string): ReactElement | null {
  if (!isReadable(text)) return null;
  try {
    // It has no state: called as a function it reads the text at once, and only once.
    return ReactMarkdown({ children: text, remarkPlugins: plugins, components, urlTransform: (url) => url });
  } catch {
    return null;
  }
}

function elementOf(text: string): ReactElement | null {
  let element = read.get(text);
  if (element === undefined) {
    element = parse(text);
    if (read.size >= READ_MAX) read.delete(read.keys().next().value ?? "");
    read.set(text, element);
  }
  return element;
}

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
