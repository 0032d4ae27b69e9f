// Markdown of others: no HTML, no script, nothing loaded from elsewhere. Load this module lazily.
import { memo, type ReactElement } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { useT } from "@/i18n";
import { Code } from "./code";
import { Icon } from "./icons";
import { linkTarget } from "./links";
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
const read = new Map<string, ReactElement>();

function elementOf(text: string): ReactElement {
  let element = read.get(text);
  if (!element) {
    // It has no state: called as a function it reads the text at once, and only once.
    element = ReactMarkdown({ children: text, remarkPlugins: plugins, components, urlTransform: (url) => url });
    if (read.size >= READ_MAX) read.delete(read.keys().next().value ?? "");
    read.set(text, element);
  }
  return element;
}

/** `growing`: the text is not complete, and keeping it would only push others out. */
export const Markdown = memo(function Markdown({ text, growing }: { text: string; growing?: boolean }) {
  const element = growing ? ReactMarkdown({ children: text, remarkPlugins: plugins, components, urlTransform: (url) => url }) : elementOf(text);
  return <div className={styles["markdown"]}>{element}</div>;
});

export default Markdown;
