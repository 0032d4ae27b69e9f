// The drawing of a chart: uPlot on a canvas, in the colours of the theme, as wide as its place.
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useLanguage } from "@/i18n";
import { useTheme } from "@/theme/theme";
import type { ChartProps } from "./chart-card";
import { momentText } from "./figures";
import { stacked } from "./series";
import styles from "./overview.module.css";
import { useDarkSystem } from "./use-dark-system";

const HEIGHT = 180;

export function Plot({ at, lines, kind, format, isLong, onStep }: ChartProps & { onStep: (step: number | null) => void }) {
  const place = useRef<HTMLDivElement>(null);
  const { language } = useLanguage();
  const { theme } = useTheme();
  const darkSystem = useDarkSystem();
  const chart = useRef<uPlot | null>(null);
  const latest = useRef({ format, onStep });
  latest.current = { format, onStep };
  const values = kind === "bars" ? stacked(lines) : lines.map((line) => line.values);
  const data = useRef<uPlot.AlignedData>([[]]);
  data.current = [at, ...values] as uPlot.AlignedData;
  const step = (at[1] ?? 60) - (at[0] ?? 0);
  const colors = lines.map((line) => line.color).join();

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const made = new uPlot(
      options({
        width: element.clientWidth,
        step,
        kind,
        colors: colors.split(",").map((name) => resolved(element, name)),
        text: resolved(element, "--text-3"),
        grid: resolved(element, "--border"),
        surface: resolved(element, "--surface"),
        moment: (seconds) => momentText(seconds, language, isLong),
        value: (value) => latest.current.format(value),
        onStep: (step) => latest.current.onStep(step),
      }),
      data.current,
      element,
    );
    chart.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [kind, step, colors, language, isLong, theme, darkSystem]);

  // New figures move into the chart that is there.
  useEffect(() => chart.current?.setData(data.current));

  return <div ref={place} className={styles["plot"]} style={{ height: HEIGHT }} />;
}

/** A colour of the theme as a canvas takes it. */
function resolved(element: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** As wide as the longest label needs. */
function room(labels: string[] | null): number {
  const longest = Math.max(0, ...(labels ?? []).map((label) => label.length));
  return Math.max(40, 14 + 7.5 * longest);
}

interface Drawing {
  width: number;
  /** Seconds from one figure to the next. */
  step: number;
  kind: "bars" | "lines";
  colors: string[];
  text: string;
  grid: string;
  surface: string;
  moment: (seconds: number) => string;
  value: (value: number) => string;
  onStep: (step: number | null) => void;
}

function options({ width, step, kind, colors, text, grid, surface, moment, value, onStep }: Drawing): uPlot.Options {
  const bars = uPlot.paths.bars?.({ size: [0.7, 24], radius: 0.2 });
  const axis = { stroke: text, font: "12px system-ui, sans-serif", ticks: { show: false }, grid: { stroke: grid, width: 1 } };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 24, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7, fill: surface } },
    scales: {
      x: { range: (_, min, max) => [min - step / 2, max + step / 2] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      { ...axis, size: 28, grid: { show: false }, space: 80, values: (_, seconds) => seconds.map(moment) },
      { ...axis, size: (_, shown) => room(shown), space: 36, values: (_, shown) => shown.map(value) },
    ],
    series: [
      {},
      ...colors.map((stroke) =>
        kind === "bars"
          ? { stroke, fill: stroke, width: 0, points: { show: false }, ...(bars ? { paths: bars } : {}) }
          : { stroke, width: 2, points: { show: true, size: 4, fill: stroke } },
      ),
    ],
    hooks: { setCursor: [(chart) => onStep(chart.cursor.idx ?? null)] },
  };
}
