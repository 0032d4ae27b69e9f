// A failed run: explanation, code and advice.
import { Link } from "wouter";
import { useT, type T } from "@/i18n";
import { explainFailure } from "@/pages/runs/logic/explain";
import { said } from "@/pages/runs/logic/say";
import { Icon } from "@/ui";
import type { ErrorEntry } from "./entry";
import styles from "./entries.module.css";

export function FailureView({ entry }: { entry: ErrorEntry }) {
  const t = useT();
  const { what, todo } = wordsOf(entry, t);
  return (
    <div className={styles["failure"]} role="alert" data-kind="error">
      <Icon name="error" size={20} />
      <div>
        <strong>{entry.runId ? t("chat.errorTitle") : t("chat.errorNotSent")}</strong>
        <p>
          {what} {todo}
        </p>
        {entry.message && <p className={styles["detail"]}>{entry.message}</p>}
        <p className={styles["code"]}>
          <code>{entry.code}</code>
          {entry.runId && <Link href={`/runs/${encodeURIComponent(entry.runId)}`}>{t("chat.runShow")}</Link>}
        </p>
      </div>
    </div>
  );
}

function wordsOf({ code, agent }: ErrorEntry, t: T): { what: string; todo: string } {
  if (code === "interrupt_pending") return { what: t("chat.errorInterruptPending"), todo: t("chat.errorInterruptPendingTodo") };
  if (code === "unreachable") return { what: t("chat.errorUnreachable"), todo: t("chat.errorUnreachableTodo") };
  const explained = explainFailure(code, agent);
  return { what: said(t, explained.what), todo: said(t, explained.todo) };
}
