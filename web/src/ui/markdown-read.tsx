// Parses untrusted Markdown into elements: no HTML, no script, no remote content.
import type { ReactElement } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { useT } from "@/i18n";
import { Code } from "./code";
import { Icon } from "./icons";
import { linkTarget } from "./links";
import { isReadable } from "./markdown-guard";
import styles from "./markdown.module.css";

/** The processor data that a plugin extends. */
interface Reader {
  data: () => object;
}

/** The plugin's extensions are the same for each text and expensive to build: they are built once. */
const added = {};
(remarkGfm as (this: Reader) => void).call({ data: () => added });
const plugins = [
  function (this: Reader) {
    Object.assign(this.data(), added);
  },
];

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

/** Images in texts are never loaded: they become links. */
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

/** Cache of parsed texts: rows of long lists mount and unmount while scrolling. */
const READ_MAX = 400;
const read = new Map<string, ReactElement | null>();

/** Null for a text that is shown plain. */
export function parse(text: string): ReactElement | null {
  if (!isReadable(text)) return null;
  try {
    // Stateless: called as a function it parses the text at once, and only once.
    return ReactMarkdown({ children: text, remarkPlugins: plugins, components, urlTransform: (url) => url });
  } catch {
    return null;
  }
}

export function elementOf(text: string): ReactElement | null {
  let element = read.get(text);
  if (element === undefined) {
    element = parse(text);
    if (read.size >= READ_MAX) read.delete(read.keys().next().value ?? "");
    read.set(text, element);
  }
  return element;
}

/** Texts that will be rendered soon, the next one last. */
let ahead: string[] = [];
/** Minimum time to parse one text, maximum for several: the user may start to scroll. */
const ONE_MS = 3;
const SOME_MS = 8;

/** Parses texts while the page is idle. */
export function readAhead(texts: string[]): void {
  const isIdle = ahead.length === 0;
  ahead = texts.slice(0, READ_MAX / 2).reverse();
  if (isIdle && ahead.length > 0 && "requestIdleCallback" in window) requestIdleCallback(readSome);
}

function readSome(moment: IdleDeadline): void {
  const end = performance.now() + SOME_MS;
  while (ahead.length > 0 && moment.timeRemaining() > ONE_MS && performance.now() < end) elementOf(ahead.pop() ?? "");
  if (ahead.length > 0) requestIdleCallback(readSome);
}
