// Answered approvals: answer, who, when and outcome.
import type { ReactNode } from "react";
import type { Approval } from "@/api/types";
import { useT, useTextOf } from "@/i18n";
import { Facts, JsonView, StatusBadge, Time } from "@/ui";
import { DisclosureList } from "../facts/disclosure";
import styles from "../facts/facts.module.css";
import { ConversationLink, Listed, RunLink } from "../facts/list-parts";
import { useFactList } from "../facts/use-fact-list";
import { ApprovalAbout } from "./about";
import { askedInput } from "./edited";
import { approvalActor, approvalSentence } from "./sentence";

const isSettled = (approval: Approval) => approval.status !== "pending";

export function Answered() {
  const t = useT();
  const list = useFactList<Approval>("/v1/approvals", {}, isSettled);
  return (
    <Listed
      list={list}
      filtered={false}
      at={(approval) => approval.created_at}
      empty={{ icon: "approvals", title: t("approvals.empty_answered"), hint: t("approvals.empty_answered_hint") }}
    >
      {(approvals) => (
        <DisclosureList
          label={t("approvals.tab_answered")}
          items={approvals}
          itemKey={(approval) => approval.approval_id}
          summary={(approval) => <Summary approval={approval} />}
          details={(approval) => <Details approval={approval} />}
        />
      )}
    </Listed>
  );
}

function Summary({ approval }: { approval: Approval }) {
  const t = useT();
  return (
    <>
      <StatusBadge status={approval.status} />
      <span className={styles["grow"]}>{approvalSentence(t, approval)}</span>
      <span className={styles["aside"]}>
        {approval.answered_by && <>{t("approvals.answered_by", { name: approval.answered_by })} · </>}
        <Time at={approval.answered_at ?? approval.expires_at} />
      </span>
    </>
  );
}

function Details({ approval }: { approval: Approval }) {
  const t = useT();
  const textOf = useTextOf();
  const { outcome } = approval;
  const changed = askedInput(approval);
  return (
    <>
      <ApprovalAbout approval={approval} />
      <Facts
        items={[
          [t("approvals.for_whom"), approvalActor(approval) ?? t("approvals.no_user")],
          [t("approvals.in_conversation"), <ConversationLink key="conversation" id={approval.conversation_id} />],
          [t("approvals.in_run"), <RunLink key="run" id={approval.run_id} />],
          [t("approvals.asked"), <Time key="asked" at={approval.created_at} absolute />],
          [t("approvals.tab_answered"), <Time key="answered" at={approval.answered_at} absolute />],
          ...(outcome
            ? [[t("approvals.outcome"), [textOf("approvals", `outcome_${outcome.status}`, outcome.status), outcome.error].filter(Boolean).join(": ")] as [string, string]]
            : []),
          ...(changed ? [[t("approvals.edited_from"), <code key="edited">{JSON.stringify(changed)}</code>] as [string, ReactNode]] : []),
        ]}
      />
      <JsonView value={approval} openDepth={0} />
    </>
  );
}
