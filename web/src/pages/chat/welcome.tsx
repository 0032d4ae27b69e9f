// A conversation in which nothing was said: what can be tried right away.
import { useT } from "@/i18n";
import { Icon, Logo } from "@/ui";
import styles from "./welcome.module.css";

const examples = [
  { icon: "tool", label: "chat.exampleToolsLabel", text: "chat.exampleTools" },
  { icon: "calendar", label: "chat.exampleScheduleLabel", text: "chat.exampleSchedule" },
  { icon: "search", label: "chat.exampleCalendarLabel", text: "chat.exampleCalendar" },
] as const;

export function Welcome({ agent, onPick }: { agent: string; onPick: (text: string) => void }) {
  const t = useT();
  return (
    <div className={styles["welcome"]}>
      <Logo size={44} />
      <h2>{t("chat.emptyTitle", { agent })}</h2>
      <p className="muted">{t("chat.emptyHint")}</p>
      <div className={styles["examples"]}>
        {examples.map((example) => (
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
