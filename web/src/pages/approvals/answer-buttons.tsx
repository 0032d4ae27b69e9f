// The buttons of an approval, always in the order allow, deny.
import { useT } from "@/i18n";
import { Button } from "@/ui";
import styles from "./approvals.module.css";

export interface AnswerButtonsProps {
  onAnswer: (decision: "allow" | "deny") => void;
  /** The answer being sent. */
  given?: "allow" | "deny" | null;
  disabled?: boolean;
  /** Instead of “Allow” and “Deny”. */
  labels?: { allow: string; deny: string };
}

export function AnswerButtons({ onAnswer, given = null, disabled = false, labels }: AnswerButtonsProps) {
  const t = useT();
  return (
    <div className={styles["answers"]}>
      <Button variant="primary" icon="check" disabled={disabled || given !== null} busy={given === "allow"} onClick={() => onAnswer("allow")}>
        {labels?.allow ?? t("approvals.allow")}
      </Button>
      <Button variant="danger" icon="close" disabled={disabled || given !== null} busy={given === "deny"} onClick={() => onAnswer("deny")}>
        {labels?.deny ?? t("approvals.deny")}
      </Button>
    </div>
  );
}
