// The buttons of an approval; the input of a call can be changed before it is allowed.
import { useState } from "react";
import type { Approval, JsonObject } from "@/api/types";
import { useT } from "@/i18n";
import { Button, Field, Textarea } from "@/ui";
import { AnswerButtons, type AnswerButtonsProps } from "./answer-buttons";
import styles from "./approvals.module.css";
import { editedArgs, inputText } from "./edited";

export interface AnswerCallProps extends Omit<AnswerButtonsProps, "onAnswer" | "labels"> {
  approval: Approval;
  onAnswer: (decision: "allow" | "deny", args: JsonObject | null) => void;
}

export function AnswerCall({ approval, onAnswer, ...buttons }: AnswerCallProps) {
  const t = useT();
  const asked = inputText(approval);
  const [text, setText] = useState<string | null>(null);
  const [tried, setTried] = useState(false);
  const args = text === null ? null : editedArgs(approval, text);
  const answer = (decision: "allow" | "deny") => {
    setTried(true);
    if (decision === "allow" && args === undefined) return;
    onAnswer(decision, decision === "allow" ? (args ?? null) : null);
  };
  return (
    <div className={styles["call"]}>
      {text !== null && (
        <Field label={t("approvals.edited_input")} hint={t("approvals.edited_hint")} error={tried && args === undefined ? t("approvals.edited_invalid") : undefined}>
          {(props) => <Textarea {...props} rows={Math.min(16, text.split("\n").length + 1)} spellCheck={false} value={text} onChange={(event) => setText(event.target.value)} />}
        </Field>
      )}
      <div className={styles["answers"]}>
        <AnswerButtons {...buttons} {...(args ? { labels: { allow: t("approvals.allow_edited"), deny: t("approvals.deny") } } : {})} onAnswer={answer} />
        {asked !== null && (
          <Button variant="quiet" disabled={buttons.disabled || (buttons.given ?? null) !== null} onClick={() => setText(text === null ? asked : null)}>
            {t(text === null ? "approvals.edit" : "approvals.edit_undo")}
          </Button>
        )}
      </div>
    </div>
  );
}
