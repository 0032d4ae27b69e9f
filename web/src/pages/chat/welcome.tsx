// An empty conversation with examples.
import type { Agent } from "@/api/types";
import { useT } from "@/i18n";
import { Icon, Logo } from "@/ui";
import styles from "./welcome.module.css";

const examples = [
  { icon: "tool", label: "chat.exampleToolsLabel", text: "chat.exampleTools" },
  { icon: "calendar", label: "chat.exampleScheduleLabel", text: "chat.exampleSchedule" },
  { icon: "search", label: "chat.exampleCalendarLabel", text: "chat.exampleCalendar" },
] as const;

/** Only agents with this runner have the tools of the examples. */
const WITH_TOOLS = "plugin:greenroom/local-agent/default";

export function Welcome({ agent, onPick }: { agent: Agent; onPick: ((text: string) => void) | null }) {
  const t = useT();
  const tries = onPick && (agent.runner_id === WITH_TOOLS || agent.name === "assistant");
  return (
    <div className={styles["welcome"]}>
      <Logo size={44} />
      <h2>{t("chat.emptyTitle", { agent: agent.name })}</h2>
      {tries && <p className="muted">{t("chat.emptyHint")}</p>}
      <div className={styles["examples"]}>
        {tries && examples.map((example) => (
          <button key={example.text} type="button" className={styles["example"]} onClick={() => onPick(t(example.text))}>
            <Icon name={example.icon} size={18} />
            <span>
              <strong>{t(example.text)}</strong>
              <span className="muted">{t(example.label)}</span>
            </span>
          </button>
        ))}
      </div>
    </div>
  );
}
