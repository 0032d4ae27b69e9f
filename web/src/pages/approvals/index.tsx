// The approvals inbox: pending and answered.
import { useLocation } from "wouter";
import { useT } from "@/i18n";
import { Card, Empty, Loaded, Page, Skeleton, Tabs } from "@/ui";
import { useFilters } from "../facts/filter-bar";
import { Answered } from "./answered";
import { ApprovalCard } from "./approval-card";
import { usePendingApprovals } from "./pending";
import styles from "./approvals.module.css";

export default function ApprovalsPage() {
  const t = useT();
  const [, navigate] = useLocation();
  const { filters } = useFilters(["show"] as const);
  const { count, more } = usePendingApprovals();
  const shown = filters.show === "answered" ? "answered" : "pending";
  return (
    <Page title={t("approvals.title")} subtitle={t("approvals.lead")}>
      <Tabs
        label={t("approvals.title")}
        value={shown}
        onChange={(next) => navigate(next === "answered" ? "/approvals?show=answered" : "/approvals")}
        tabs={[
          {
            value: "pending",
            label: (
              <>
                {t("approvals.tab_pending")}
                {count > 0 && <span className={styles["count"]}>{more ? `${count}+` : count}</span>}
              </>
            ),
            content: <Pending />,
          },
          { value: "answered", label: t("approvals.tab_answered"), content: <Answered /> },
        ]}
      />
    </Page>
  );
}

function Pending() {
  const t = useT();
  const { query } = usePendingApprovals();
  return (
    <Loaded
      query={query}
      skeleton={
        <Card>
          <Skeleton lines={4} />
        </Card>
      }
    >
      {({ items }) =>
        items.length === 0 ? (
          <Card>
            <Empty icon="approvals" title={t("approvals.empty_pending")}>
              {t("approvals.empty_pending_hint")}
            </Empty>
          </Card>
        ) : (
          <ul className={styles["cards"]} aria-label={t("approvals.tab_pending")}>
            {items.map((approval) => (
              <li key={approval.approval_id}>
                <ApprovalCard approval={approval} />
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}
