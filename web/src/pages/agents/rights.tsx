// Permissions as sentences: allowed, needing approval, not allowed.
import { useT } from "@/i18n";
import { said } from "@/pages/runs/logic/say";
import { Icon } from "@/ui";
import type { Level, Right } from "./logic/permissions";
import styles from "./rights.module.css";

const ICONS = { yes: "check", ask: "user", no: "close" } as const;
/** Further names are under “more”. */
const NAMES_AT_ONCE = 8;

export function Rights({ rights }: { rights: Right[] }) {
  const t = useT();
  const levels: Level[] = ["yes", "ask", "no"];
  return (
    <div className={styles["frame"]}>
      <div className={styles["rights"]}>
      {levels.map((level) => {
        const some = rights.filter((right) => right.level === level);
        if (some.length === 0) return null;
        return (
          <section key={level} className={styles[`part-${level}`]}>
            <h3 className={styles[level]}>{t(`agents.level.${level}`)}</h3>
            <ul>
              {some.map((right, index) => (
                <li key={index}>
                  <span className={styles[level]}>
                    <Icon name={ICONS[level]} size={16} />
                  </span>
                  <div>
                    {said(t, right.text)}
                    <Names names={right.names} />
                  </div>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
      </div>
    </div>
  );
}

export function Names({ names }: { names: string[] }) {
  if (names.length === 0) return null;
  const [first, rest] = [names.slice(0, NAMES_AT_ONCE), names.slice(NAMES_AT_ONCE)];
  const chips = (some: string[]) => some.map((name) => <code key={name} className={styles["name"]}>{name}</code>);
  return (
    <span className={styles["names"]}>
      {chips(first)}
      {rest.length > 0 && (
        <details>
          <summary>+{rest.length}</summary>
          {chips(rest)}
        </details>
      )}
    </span>
  );
}
