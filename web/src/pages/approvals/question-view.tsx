// A question of a tool's server, with its fields or its address, and the buttons that answer it.
import { useState } from "react";
import type { Approval, JsonObject } from "@/api/types";
import { useT } from "@/i18n";
import { draftOf, missing, valuesOf } from "@/pages/chat/interaction";
import { FormField } from "@/pages/chat/interaction-view";
import { AnswerButtons, type AnswerButtonsProps } from "./answer-buttons";
import styles from "./approvals.module.css";
import { questionForm, questionText, questionUrl } from "./question";

export interface QuestionProps extends Omit<AnswerButtonsProps, "onAnswer"> {
  approval: Approval;
  mayAnswer?: boolean;
  onAnswer: (decision: "allow" | "deny", values: JsonObject | null) => void;
}

export function Question({ approval, mayAnswer = true, onAnswer, ...buttons }: QuestionProps) {
  const t = useT();
  const form = questionForm(approval);
  const url = questionUrl(approval);
  const [draft, setDraft] = useState(() => (form ? draftOf(form) : {}));
  const [tried, setTried] = useState(false);
  const empty = form && tried ? missing(form, draft) : [];
  const answer = (decision: "allow" | "deny") => {
    setTried(true);
    if (decision === "allow" && form && missing(form, draft).length > 0) return;
    onAnswer(decision, decision === "allow" && form ? valuesOf(form, draft) : null);
  };
  return (
    <div className={styles["asked"]} data-kind="question">
      <p className={styles["quote"]}>{questionText(approval)}</p>
      {url && (
        <p>
          <a href={url} target="_blank" rel="noopener noreferrer">
            {url}
          </a>
        </p>
      )}
      {(form?.fields ?? []).map((field) => (
        <FormField
          key={field.id}
          field={field}
          value={draft[field.id] ?? ""}
          {...(empty.includes(field.id) ? { error: t("chat.formRequired") } : {})}
          onChange={(value) => setDraft((now) => ({ ...now, [field.id]: value }))}
        />
      ))}
      {mayAnswer ? (
        <AnswerButtons {...buttons} labels={{ allow: t(url ? "approvals.done" : "approvals.send"), deny: t("approvals.decline") }} onAnswer={answer} />
      ) : (
        <span className="muted">{t("approvals.may_not_answer")}</span>
      )}
    </div>
  );
}
