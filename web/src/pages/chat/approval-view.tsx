// A question of a run: what would be done, with what, and yes or no.
import { useT } from "@/i18n";
import { approvalInput, approvalRisk, approvalSentence } from "@/pages/approvals/sentence";
import type { Approval } from "@/api/types";
import { Button, Icon, JsonView, StatusBadge, Time } from "@/ui";
import styles from "./approval.module.css";
import { useChat } from "./chat-context";
import type { ApprovalEntry } from "./entry";

export function ApprovalView({ entry }: { entry: ApprovalEntry }) {
  const t = useT();
  const { agent, decide } = useChat();
  const approval = { ...entry, agent } as unknown as Approval;
  const risk = approvalRisk(approval);
  return (
    <section className={styles["approval"]} data-kind="approval" aria-label={t("chat.approvalTitle", { agent })}>
      <header className={styles["head"]}>
        <Icon name="approvals" size={20} />
        <div>
          <strong>{t("chat.approvalTitle", { agent })}</strong>
          <p>{approvalSentence(t, approval)}</p>
        </div>
      </header>
      <JsonView value={approvalInput(approval)} />
      {entry.decision === null ? (
        <div className={styles["foot"]}>
          <Button variant="primary" icon="check" onClick={() => decide(entry.runId, entry.id, true)}>
            {t("chat.allow")}
          </Button>
          <Button variant={risk === "read" ? "secondary" : "danger"} icon="close" onClick={() => decide(entry.runId, entry.id, false)}>
            {t("chat.deny")}
          </Button>
          {entry.expiresAt && (
            <span className="muted">
              <Icon name="clock" size={14} /> <Time at={entry.expiresAt} />
            </span>
          )}
        </div>
      ) : (
        <div className={styles["foot"]}>
          <StatusBadge status={entry.decision} />
          {entry.busy && <span className="muted">{t("chat.approvalOthers")}</span>}
        </div>
      )}
    </section>
  );
}
