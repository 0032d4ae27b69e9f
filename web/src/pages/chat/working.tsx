// Activity of the run, below the last entry.
import { useT } from "@/i18n";
import styles from "./list.module.css";
import type { LiveRun } from "./live-run";

export function Working({ active }: { active: LiveRun[] }) {
  const t = useT();
  const run = active.find((one) => one.status !== "waiting");
  if (!run) return null;
  const words = run.status === "reconnecting" ? t("chat.reconnecting") : t("chat.working", { agent: run.agent });
  return (
    <div className={styles["working"]}>
      <span className={styles["dots"]} aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      {words}
    </div>
  );
}
