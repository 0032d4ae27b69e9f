// A chart with what people need who cannot see it: a summary in words, and the figures as a table.
import { useState } from "react";
import { useLanguage } from "@/i18n";
import { Card } from "@/ui";
import { momentText } from "./figures";
import { Plot } from "./plot";
import { busySteps, hasFigures, peak, type Line } from "./series";
import styles from "./overview.module.css";

export interface ChartProps {
  title: string;
  kind: "bars" | "lines";
  /** Unix seconds of each step. */
  at: number[];
  lines: Line[];
  format: (value: number) => string;
  /** Whether moments need their day. */
  isLong: boolean;
}

export default function ChartCard(props: ChartProps) {
  const { t, language } = useLanguage();
  const { title, at, lines, format, isLong } = props;
  const [step, setStep] = useState<number | null>(null);
  const shown = lines.filter(hasFigures);
  const moment = (index: number) => momentText(at[index] ?? 0, language, isLong);
  const summary = shown
    .map((line) => {
      const top = peak(line.values);
      return top ? t("overview.chart_summary", { label: line.label, value: format(top.value), time: moment(top.index) }) : "";
    })
    .join(" ");
  return (
    <Card title={title} actions={<Legend lines={shown} step={step} format={format} moment={moment} />}>
      {shown.length === 0 ? (
        <p className={styles["nothing"]}>{t("overview.chart_nothing")}</p>
      ) : (
        <>
          <div role="img" aria-label={`${title}. ${summary}`}>
            <Plot {...props} lines={shown} onStep={setStep} />
          </div>
          <p className={styles["summary"]}>{summary}</p>
          <details className={styles["table"]}>
            <summary>{t("overview.chart_table")}</summary>
            <ChartTable {...props} lines={shown} moment={moment} />
          </details>
        </>
      )}
    </Card>
  );
}

interface LegendProps {
  lines: Line[];
  step: number | null;
  format: (value: number) => string;
  moment: (index: number) => string;
}

/** Names and colours; the figures of the step under the pointer while there is one. */
function Legend({ lines, step, format, moment }: LegendProps) {
  return (
    <div className={styles["legend"]} aria-hidden="true">
      {step !== null && <span className="nums">{moment(step)}</span>}
      {lines.map((line) => {
        const value = step === null ? null : line.values[step];
        return (
          <span key={line.label}>
            <i style={{ background: `var(${line.color})` }} />
            {line.label}
            {value !== null && value !== undefined && <b className="nums">{format(value)}</b>}
          </span>
        );
      })}
    </div>
  );
}

function ChartTable({ title, at, lines, format, moment }: ChartProps & { moment: (index: number) => string }) {
  const { t } = useLanguage();
  return (
    <div className={styles["scroll"]} tabIndex={0} role="region" aria-label={title}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t("overview.chart_time")}</th>
            {lines.map((line) => (
              <th key={line.label} scope="col">
                {line.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {busySteps(lines, at.length).map((index) => (
            <tr key={index}>
              <th scope="row">{moment(index)}</th>
              {lines.map((line) => {
                const value = line.values[index];
                return <td key={line.label}>{value === null || value === undefined ? "–" : format(value)}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
