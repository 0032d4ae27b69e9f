// One line: everything is working, or the list of problems.
import { Link } from "wouter";
import type { Overview } from "@/api/types";
import { useT } from "@/i18n";
import { Icon } from "@/ui";
import { useRunners, useToolServers } from "./health";
import { problemsOf, type Problem } from "./problem-list";
import styles from "./overview.module.css";

export function Problems({ overview }: { overview: Overview }) {
  const t = useT();
  const runners = useRunners().data?.items ?? [];
  const servers = useToolServers().data?.items ?? [];
  const problems = problemsOf(overview, runners, servers);
  if (problems.length === 0) {
    return (
      <div className={styles["well"]} role="status">
        <Icon name="check" size={18} />
        {t("overview.all_well")}
      </div>
    );
  }
  return (
    <div className={styles["unwell"]} role="status">
      <Icon name="warning" size={18} />
      <div>
        <strong>{t("overview.attention", { count: problems.length })}</strong>
        <ul>
          {problems.map((problem, index) => (
            <li key={index}>
              <ProblemText problem={problem} />
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

function ProblemText({ problem }: { problem: Problem }) {
  const t = useT();
  switch (problem.kind) {
    case "store":
      return t("overview.problem_store");
    case "runner":
      return <Link href="/runners">{t("overview.problem_runner", { name: problem.name, status: t(`overview.trouble_${problem.trouble}`) })}</Link>;
    case "server":
      return t("overview.problem_server", { name: problem.name, status: t(`overview.trouble_${problem.trouble}`) });
    case "model":
      return t("overview.problem_model", { name: problem.name, code: problem.code });
    case "approvals":
      return <Link href="/approvals">{t("overview.problem_approvals", { count: problem.count })}</Link>;
    case "deliveries":
      return <Link href="/deliveries?status=pending">{t("overview.problem_deliveries", { count: problem.count })}</Link>;
    case "undelivered":
      return <Link href={`/deliveries?status=${problem.status}`}>{t(`overview.problem_undelivered_${problem.status}`, { count: problem.count })}</Link>;
  }
}
