// What a call of an external harness did: its command, its files, how they changed, and its output.
import { useT } from "@/i18n";
import type { FileChange, HarnessCall } from "./harness-call";
import { diffLines } from "./harness-call";
import styles from "./harness.module.css";

const marks = { both: " ", left: "-", right: "+", gap: "⋯" } as const;

export function HarnessView({ call }: { call: HarnessCall }) {
  const t = useT();
  const shown = new Set(call.changes.map((change) => change.path));
  const others = call.paths.filter((path) => !shown.has(path));
  return (
    <div className={styles["call"]}>
      {call.command !== null && <pre className={styles["command"]}>{`$ ${call.command}`}</pre>}
      {others.length > 0 && (
        <ul className={styles["paths"]} aria-label={t("chat.toolFiles")}>
          {others.map((path) => (
            <li key={path}>{path}</li>
          ))}
        </ul>
      )}
      {call.changes.map((change, index) => (
        <Change key={index} change={change} />
      ))}
      {call.output && (
        <pre className={styles["output"]} tabIndex={0} aria-label={t("chat.toolOutput")}>
          {call.output}
        </pre>
      )}
    </div>
  );
}

function Change({ change }: { change: FileChange }) {
  const t = useT();
  return (
    <figure className={styles["change"]} data-kind="diff">
      <figcaption>{change.path}</figcaption>
      <div className={styles["lines"]} role="group" tabIndex={0} aria-label={t("chat.toolChange", { path: change.path })}>
        {diffLines(change).map((line, index) => (
          <div key={index} className={styles[line.side]} data-side={line.side}>
            <span className={styles["mark"]}>{marks[line.side]}</span>
            {line.text}
          </div>
        ))}
      </div>
    </figure>
  );
}
