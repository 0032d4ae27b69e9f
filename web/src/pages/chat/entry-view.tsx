// One entry of a conversation, stored or live.
import { memo } from "react";
import { Link } from "wouter";
import { hostUrl } from "@/api/base";
import { useT } from "@/i18n";
import { Badge, CopyButton, Icon, IconButton, Time, useToast } from "@/ui";
import { copyText } from "@/ui/clipboard";
import { LazyMarkdown } from "@/ui/markdown-late";
import { ApprovalView } from "./approval-view";
import { useChat } from "./chat-context";
import type { AnswerEntry, Delivery, Entry, UserEntry } from "./entry";
import styles from "./entries.module.css";
import { FailureView } from "./failure-view";
import { FileView } from "./file-view";
import { InteractionView } from "./interaction-view";
import { PlanView } from "./plan-view";
import { ToolView } from "./tool-view";

export const EntryView = memo(function EntryView({ entry, isLastOfRun }: { entry: Entry; isLastOfRun: boolean }) {
  return (
    <div className={styles["row"]}>
      <Body entry={entry} />
      {isLastOfRun && <RunBar entry={entry} />}
    </div>
  );
});

function Body({ entry }: { entry: Entry }) {
  const t = useT();
  switch (entry.kind) {
    case "user":
      return <UserMessage entry={entry} />;
    case "answer":
      return <Answer entry={entry} />;
    case "reasoning":
      return (
        <details className={styles["thoughts"]}>
          <summary>
            <Icon name="thought" size={16} />
            {t("chat.thinking")}
          </summary>
          <div className={styles["thought"]}>{entry.text}</div>
        </details>
      );
    case "tool":
      return <ToolView entry={entry} />;
    case "plan":
      return <PlanView entry={entry} />;
    case "files":
      return (
        <div className={styles["files"]}>
          {entry.files.map((file, index) => (
            <FileView key={file.artifactId ?? index} file={file} />
          ))}
        </div>
      );
    case "approval":
      return <ApprovalView entry={entry} />;
    case "interaction":
      return <InteractionView entry={entry} />;
    case "error":
      return <FailureView entry={entry} />;
    case "notice":
      return <p className={styles["notice"]}>{t(entry.notice === "cancelled" ? "chat.cancelled" : "chat.restarted")}</p>;
    case "other":
      return <p className={styles["notice"]}>{entry.text}</p>;
  }
}

const deliveries = { sending: "chat.sending", queued: "chat.queued", steered: "chat.steered", failed: "chat.sendFailed" } as const;

function UserMessage({ entry }: { entry: UserEntry }) {
  const t = useT();
  const { write } = useChat();
  return (
    <div className={styles["said"]} data-kind="user">
      {entry.files.length > 0 && (
        <div className={styles["files"]}>
          {entry.files.map((file, index) => (
            <FileView key={file.artifactId ?? index} file={file} />
          ))}
        </div>
      )}
      {entry.text && <div className={styles["bubble"]}>{entry.text}</div>}
      <div className={styles["meta"]}>
        {entry.delivery && <State delivery={entry.delivery} />}
        {entry.delivery === "failed" && (
          <button type="button" className={styles["again"]} onClick={() => write(entry.text)}>
            {t("chat.tryAgain")}
          </button>
        )}
        {!entry.delivery && entry.at && <Time at={entry.at} />}
      </div>
    </div>
  );
}

function State({ delivery }: { delivery: NonNullable<Delivery> }) {
  const t = useT();
  const tone = delivery === "failed" ? "bad" : delivery === "steered" ? "info" : "neutral";
  return <Badge tone={tone}>{t(deliveries[delivery])}</Badge>;
}

function Answer({ entry }: { entry: AnswerEntry }) {
  return (
    <article className={`${styles["answer"]} ${entry.streaming ? styles["streaming"] : ""}`} data-kind="answer">
      <LazyMarkdown text={entry.text} growing={entry.streaming} />
    </article>
  );
}

/** Actions below the last entry of an agent's turn: copy, share and open its run. */
function RunBar({ entry }: { entry: Entry }) {
  const t = useT();
  const toast = useToast();
  if (!entry.runId) return null;
  const href = `/runs/${encodeURIComponent(entry.runId)}`;
  const share = () =>
    copyText(window.location.origin + hostUrl(href)).then(
      () => toast(t("chat.linkCopied")),
      () => toast(t("ui.copyFailed"), "bad"),
    );
  return (
    <div className={styles["bar"]}>
      {entry.kind === "answer" && <CopyButton text={entry.text} label={t("chat.answerCopy")} />}
      <IconButton icon="link" size="s" iconSize={16} label={t("chat.runCopy")} onClick={() => void share()} />
      <Link href={href} className={styles["runLink"]}>
        {t("chat.runShow")}
        <Icon name="arrowRight" size={14} />
      </Link>
      {entry.kind === "answer" && entry.at && (
        <span className="muted">
          <Time at={entry.at} />
        </span>
      )}
    </div>
  );
}
