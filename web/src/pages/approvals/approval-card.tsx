// One pending approval: action, agent, user, expiry and buttons.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ApiError, path, post } from "@/api/client";
import type { Approval, JsonObject } from "@/api/types";
import { useT } from "@/i18n";
import { Card, Facts, Time, useToast } from "@/ui";
import { ConversationLink, RunLink } from "../facts/list-parts";
import { ApprovalAbout, ApprovalWarning } from "./about";
import { AnswerCall } from "./answer-call";
import { TOOL_INPUT } from "./question";
import { Question } from "./question-view";
import { approvalActor, approvalSentence, countdown, secondsLeft } from "./sentence";
import styles from "./approvals.module.css";
import { useSession } from "./use-session";

export function ApprovalCard({ approval }: { approval: Approval }) {
  const t = useT();
  const left = useSecondsLeft(approval.expires_at);
  return (
    <Card>
      <article className={styles["question"]} aria-label={approvalSentence(t, approval)}>
        <header className={styles["head"]}>
          <h2>{approvalSentence(t, approval)}</h2>
        </header>
        {approval.action !== TOOL_INPUT && (
          <>
            <ApprovalAbout approval={approval} />
            <ApprovalWarning approval={approval} />
          </>
        )}
        <Facts
          items={[
            [t("approvals.for_whom"), approvalActor(approval) ?? t("approvals.no_user")],
            [t("approvals.in_conversation"), <ConversationLink key="conversation" id={approval.conversation_id} />],
            [t("approvals.in_run"), <RunLink key="run" id={approval.run_id} />],
            [t("approvals.asked"), <Time key="asked" at={approval.created_at} />],
          ]}
        />
        <footer className={styles["foot"]}>
          <span className={left < 60 ? styles["soon"] : styles["left"]} title={t("approvals.expiry_meaning")}>
            {left > 0 ? t("approvals.expires_in", { time: countdown(left) }) : t("approvals.expired_now")}
          </span>
          <Answers approval={approval} expired={left === 0} />
        </footer>
      </article>
    </Card>
  );
}

function Answers({ approval, expired }: { approval: Approval; expired: boolean }) {
  const t = useT();
  const toast = useToast();
  const queries = useQueryClient();
  const session = useSession();
  const answer = useMutation({
    mutationFn: ({ decision, values, args }: { decision: "allow" | "deny"; values?: JsonObject | null; args?: JsonObject | null }) =>
      post<Approval>(path("/v1/approvals/{}", approval.approval_id), { decision, nonce: approval.nonce, ...(values ? { values } : {}), ...(args ? { args } : {}) }),
    onSuccess: (_, { decision }) => toast(t(decision === "allow" ? "approvals.allowed_toast" : "approvals.denied_toast")),
    onError: (error) => toast(`${t("approvals.failed_toast")}: ${error instanceof ApiError ? error.message : String(error)}`, "bad"),
    onSettled: () => queries.invalidateQueries({ queryKey: ["approvals"] }),
  });
  const given = answer.isPending ? answer.variables.decision : null;
  const mayAnswer = session.data?.answers !== false;
  if (approval.action === TOOL_INPUT) {
    return <Question approval={approval} given={given} disabled={expired} mayAnswer={mayAnswer} onAnswer={(decision, values) => answer.mutate({ decision, values })} />;
  }
  if (!mayAnswer) return <span className="muted">{t("approvals.may_not_answer")}</span>;
  return <AnswerCall approval={approval} given={given} disabled={expired} onAnswer={(decision, args) => answer.mutate({ decision, args })} />;
}

function useSecondsLeft(expiresAt: string): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return secondsLeft(expiresAt, now);
}
