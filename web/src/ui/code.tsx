// A code block with its language and a copy button; highlighted once the highlighter is loaded.
import { Fragment, useEffect, useMemo, useState, type ReactNode } from "react";
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

type Highlight = (text: string, language: string) => Span[] | null;
let highlighter: Highlight | null = null;

/** At once if the highlighter is loaded, else as soon as it is. */
function useHighlight(text: string, language?: string): Span[] | null {
  const [loaded, setLoaded] = useState(highlighter !== null);
  const wanted = language !== undefined && text.length <= HIGHLIGHT_UP_TO;
  useEffect(() => {
    if (!wanted || loaded) return;
    let shown = true;
    import("./highlight").then(
      (module) => {
        highlighter = module.highlight;
        if (shown) setLoaded(true);
      },
      // Without the highlighter the code is shown plain.
      () => undefined,
    );
    return () => {
      shown = false;
    };
  }, [wanted, loaded]);
  return useMemo(() => (wanted && loaded && highlighter ? highlighter(text, language) : null), [wanted, loaded, text, language]);
}

function drawn(spans: Span[]): ReactNode {
  return spans.map((span, index) =>
    typeof span === "string" ? <Fragment key={index}>{span}</Fragment> : <span key={index} className={styles[span.kind]}>{drawn(span.children)}</span>,
  );
}
