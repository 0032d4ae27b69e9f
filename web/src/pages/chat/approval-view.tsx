// An approval in the chat; one line once it is answered.
import type { Approval } from "@/api/types";
import { useT } from "@/i18n";
import { ApprovalAbout, ApprovalWarning } from "@/pages/approvals/about";
import { AnswerButtons } from "@/pages/approvals/answer-buttons";
import { TOOL_INPUT } from "@/pages/approvals/question";
import { Question as Form } from "@/pages/approvals/question-view";
import { approvalInput, approvalSentence } from "@/pages/approvals/sentence";
import { useSession } from "@/pages/approvals/use-session";
import { Icon, JsonView, StatusBadge, Time } from "@/ui";
import styles from "./approval.module.css";
import { useChat } from "./chat-context";
import type { ApprovalEntry } from "./entry";

export function ApprovalView({ entry }: { entry: ApprovalEntry }) {
  const approval = { ...entry, status: entry.decision ?? "pending" } as unknown as Approval;
  return entry.decision === null ? <Question entry={entry} approval={approval} /> : <Answered entry={entry} approval={approval} />;
}

function Question({ entry, approval }: { entry: ApprovalEntry; approval: Approval }) {
  const t = useT();
  const { decide } = useChat();
  const mayAnswer = useSession().data?.answers !== false;
  const title = t("chat.approvalTitle", { agent: entry.agent });
  if (approval.action === TOOL_INPUT) {
    return (
      <section className={styles["approval"]} data-kind="approval" aria-label={approvalSentence(t, approval)}>
        <header className={styles["head"]}>
          <Icon name="approvals" size={20} />
          <strong>{approvalSentence(t, approval)}</strong>
        </header>
        <Form approval={{ ...approval, approval_id: entry.id }} mayAnswer={mayAnswer} onAnswer={(decision, values) => decide(entry.runId, entry.id, decision === "allow", values)} />
      </section>
    );
  }
  return (
    <section className={styles["approval"]} data-kind="approval" aria-label={title}>
      <header className={styles["head"]}>
        <Icon name="approvals" size={20} />
        <div>
          <strong>{title}</strong>
          <p>{approvalSentence(t, approval)}</p>
        </div>
      </header>
      <ApprovalAbout approval={approval} />
      <ApprovalWarning approval={approval} />
      <div className={styles["foot"]}>
        {mayAnswer ? (
          <AnswerButtons onAnswer={(decision) => decide(entry.runId, entry.id, decision === "allow")} />
        ) : (
          <span className="muted">{t("approvals.may_not_answer")}</span>
        )}
        {entry.expiresAt && (
          <span className="muted" title={t("chat.approvalExpires")}>
            <Icon name="clock" size={14} /> <Time at={entry.expiresAt} />
          </span>
        )}
      </div>
    </section>
  );
}

function Answered({ entry, approval }: { entry: ApprovalEntry; approval: Approval }) {
  const t = useT();
  return (
    <details className={styles["answered"]} data-kind="approval">
      <summary>
        <Icon name="approvals" size={16} />
        <span>{approvalSentence(t, approval)}</span>
        <StatusBadge status={entry.decision ?? "unknown"} />
      </summary>
      {approval.subject && <ApprovalAbout approval={approval} />}
      <JsonView value={approvalInput(approval)} />
      {entry.held && <p className="muted">{t("chat.approvalOthers")}</p>}
    </details>
  );
}
