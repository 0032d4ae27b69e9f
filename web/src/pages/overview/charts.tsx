// The four charts: runs, latency, tokens, cost.
import { lazy, Suspense } from "react";
import type { Overview } from "@/api/types";
import { useLanguage } from "@/i18n";
import { Card, Skeleton } from "@/ui";
import { durationText, moneyText } from "@/ui/format-text";
import type { ChartProps } from "./chart-card";
import { compactText, rateText } from "./figures";
import { perMinute, times, type Line, type Range } from "./series";
import styles from "./overview.module.css";

const ChartCard = lazy(() => import("./chart-card"));

export function Charts({ overview, range }: { overview: Overview; range: Range }) {
  const { t, language } = useLanguage();
  const { series } = overview;
  const line = (label: string, color: string, values: Line["values"]): Line => ({ label, color, values });
  const shared = { at: times(overview), isLong: range !== "1h" };
  const charts: ChartProps[] = [
    {
      ...shared,
      title: t("overview.chart_runs"),
      kind: "bars",
      format: (value) => rateText(value, language),
      lines: [
        line(t("overview.line_completed"), "--accent", perMinute(overview, (step) => step.completed)),
        line(t("overview.line_failed"), "--bad", perMinute(overview, (step) => step.failed)),
        line(t("overview.line_cancelled"), "--text-3", perMinute(overview, (step) => step.cancelled)),
      ],
    },
    {
      ...shared,
      title: t("overview.chart_latency"),
      kind: "lines",
      format: (value) => durationText(value, language),
      lines: [
        line(t("overview.line_p50"), "--accent", series.map((step) => step.p50_ms)),
        line(t("overview.line_p95"), "--warn", series.map((step) => step.p95_ms)),
      ],
    },
    {
      ...shared,
      title: t("overview.chart_tokens"),
      kind: "bars",
      format: (value) => compactText(value, language),
      lines: [
        line(t("overview.line_input"), "--info", series.map((step) => step.input_tokens)),
        line(t("overview.line_output"), "--accent", series.map((step) => step.output_tokens)),
      ],
    },
    {
      ...shared,
      title: t("overview.chart_cost"),
      kind: "bars",
      format: (value) => moneyText(value, "USD", language),
      lines: [line(t("overview.line_cost"), "--accent", series.map((step) => step.cost_usd))],
    },
  ];
  return (
    <div className={styles["charts"]}>
      {charts.map((chart) => (
        <Suspense key={chart.title} fallback={<Card title={chart.title}><Skeleton lines={5} /></Card>}>
          <ChartCard {...chart} />
        </Suspense>
      ))}
    </div>
  );
}
