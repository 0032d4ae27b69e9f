// One transcript item.
import { lazy, Suspense, useState } from "react";
import { Link } from "wouter";
import type { TranscriptItem } from "@/api/types";
import { useT } from "@/i18n";
import { Badge, Button, Bytes, Icon, JsonView, Time } from "@/ui";
import { RunLink } from "./list-parts";
import styles from "./conversations.module.css";

const Markdown = lazy(() => import("@/ui/markdown").then((module) => ({ default: module.Markdown })));

export function TranscriptEntry({ item }: { item: TranscriptItem }) {
  const t = useT();
  const [raw, setRaw] = useState(false);
  const name = item.actor?.actor_name ?? item.actor?.actor_id;
  return (
    <li className={styles["entry"]} data-role={item.role}>
      <div className={styles["entryHead"]}>
        <Badge tone={item.role === "user" ? "accent" : item.role === "assistant" ? "info" : "neutral"}>{t(`facts.role_${item.role}`)}</Badge>
        {name && <strong>{name}</strong>}
        {kindOf(item) && <code>{kindOf(item)}</code>}
        <span className={styles["about"]}>
          <Time at={item.created_at} />
        </span>
        <span className={styles["refs"]}>
          <RunLink id={item.run_id} />
          <Button size="s" variant="quiet" aria-expanded={raw} onClick={() => setRaw(!raw)}>
            {t("facts.raw")}
          </Button>
        </span>
      </div>
      <Body item={item} />
      <Files item={item} />
      {raw && <JsonView value={item} openDepth={1} />}
    </li>
  );
}

/** Detail beside the role: the tool, or the type of an event. */
function kindOf(item: TranscriptItem): string | null {
  const kind = item.metadata?.[item.role === "tool" ? "tool_name" : "event_type"];
  return typeof kind === "string" && kind !== "message.received" ? kind : null;
}

function Body({ item }: { item: TranscriptItem }) {
  if (item.role === "tool") return <pre className={styles["output"]} tabIndex={0}>{item.content ?? item.text}</pre>;
  if (!item.text) return null;
  if (item.role !== "assistant") return <p className={styles["said"]}>{item.text}</p>;
  return (
    <Suspense fallback={<p className={styles["said"]}>{item.text}</p>}>
      <Markdown text={item.text} />
    </Suspense>
  );
}

function Files({ item }: { item: TranscriptItem }) {
  const t = useT();
  if (!item.artifacts?.length) return null;
  return (
    <div className="row-wrap">
      {item.artifacts.map((file) => (
        <Link key={file.artifact_id} href={`/artifacts?id=${encodeURIComponent(file.artifact_id)}`} className="row">
          <Icon name="paperclip" size={16} />
          {file.name ?? t("facts.artifacts_unnamed")}
          {typeof file.size_bytes === "number" && <Bytes value={file.size_bytes} />}
        </Link>
      ))}
    </div>
  );
}
