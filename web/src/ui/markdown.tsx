// Markdown of others: no HTML, no script, nothing loaded from elsewhere. Load this module lazily.
import { memo } from "react";
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

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return (
    <div className={styles["markdown"]}>
      <ReactMarkdown remarkPlugins={plugins} components={components} urlTransform={(url) => url}>
        {text}
      </ReactMarkdown>
    </div>
  );
});

export default Markdown;
