// A plan as a list that fills.
import { useT } from "@/i18n";
import { Icon } from "@/ui";
import type { PlanEntry } from "./entry";
import styles from "./plan.module.css";

const states = { pending: "chat.stepPending", in_progress: "chat.stepRunning", completed: "chat.stepDone" } as const;

export function PlanView({ entry }: { entry: PlanEntry }) {
  const t = useT();
  const done = entry.steps.filter((step) => step.state === "completed").length;
  return (
    <section className={styles["plan"]} data-kind="plan" aria-label={t("chat.plan")}>
      <header className={styles["head"]}>
        <strong>{t("chat.plan")}</strong>
        <span className="muted">{t("chat.planCount", { done: String(done), count: String(entry.steps.length) })}</span>
      </header>
      <ol className={styles["steps"]}>
        {entry.steps.map((step, index) => (
          <li key={index} className={styles[step.state]} data-state={step.state}>
            <span className={styles["mark"]} role="img" aria-label={t(states[step.state])}>
              {step.state === "completed" && <Icon name="check" size={12} />}
            </span>
            <span>{step.text}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
