// A block of code with its language and a way to copy it; colours come when the highlighter is there.
import { Fragment, useEffect, useState, type ReactNode } from "react";
import { useT } from "@/i18n";
import { CopyButton } from "./copy";
import styles from "./code.module.css";
import type { Span } from "./highlight";

const HIGHLIGHT_UP_TO = 40_000;

export function Code({ text, language }: { text: string; language?: string }) {
  const t = useT();
  const spans = useHighlight(text, language);
  return (
    <figure className={styles["code"]}>
      <figcaption className={styles["bar"]}>
        <span>{language ?? t("ui.code")}</span>
        <CopyButton text={text} />
      </figcaption>
      <pre tabIndex={0}>
        <code>{spans ? drawn(spans) : text}</code>
      </pre>
    </figure>
  );
}

function useHighlight(text: string, language?: string): Span[] | null {
  const [result, setResult] = useState<{ text: string; spans: Span[] } | null>(null);
  useEffect(() => {
    if (!language || text.length > HIGHLIGHT_UP_TO) return;
    let wanted = true;
    void import("./highlight").then(({ highlight }) => {
      const spans = highlight(text, language);
      if (wanted && spans) setResult({ text, spans });
    });
    return () => {
      wanted = false;
    };
  }, [text, language]);
  return result?.text === text ? result.spans : null;
}

function drawn(spans: Span[]): ReactNode {
  return spans.map((span, index) =>
    typeof span === "string" ? <Fragment key={index}>{span}</Fragment> : <span key={index} className={styles[span.kind]}>{drawn(span.children)}</span>,
  );
}
