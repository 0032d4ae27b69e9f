// Chooses how far back the figures go.
import { useT } from "@/i18n";
import { RANGE_NAMES, type Range } from "./series";
import styles from "./overview.module.css";

export function RangeSwitch({ range, onRange }: { range: Range; onRange: (range: Range) => void }) {
  const t = useT();
  return (
    <div className={styles["switch"]} role="group" aria-label={t("overview.range")}>
      {RANGE_NAMES.map((name) => (
        <button key={name} type="button" aria-pressed={name === range} onClick={() => onRange(name)}>
          {t(`overview.range_${name}`)}
        </button>
      ))}
    </div>
  );
}
