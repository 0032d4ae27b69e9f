// Times, durations, sizes, money and numbers in the chosen language.
import { useLanguage } from "@/i18n";
import { bytesText, durationText, exactText, moneyText, numberText, relativeText } from "./format-text";
import { useMinute } from "./use-minute";

/** Relative time with the exact time as title; `absolute` shows the exact time. */
export function Time({ at, absolute }: { at: string | number | null | undefined; absolute?: boolean }) {
  const { language } = useLanguage();
  const now = useMinute();
  if (at === null || at === undefined) return <span className="muted">–</span>;
  const date = new Date(at);
  const exact = exactText(date, language);
  return (
    <time dateTime={date.toISOString()} title={exact} className="nums">
      {absolute ? exact : relativeText(date.getTime(), Math.max(now, Date.now()), language)}
    </time>
  );
}

export function Duration({ ms }: { ms: number | null | undefined }) {
  const { language } = useLanguage();
  return <span className="nums">{ms === null || ms === undefined ? "–" : durationText(ms, language)}</span>;
}

export function Bytes({ value }: { value: number | null | undefined }) {
  const { language } = useLanguage();
  return <span className="nums">{value === null || value === undefined ? "–" : bytesText(value, language)}</span>;
}

/** `amount` in whole units of the currency. */
export function Money({ amount, currency = "USD" }: { amount: number | null | undefined; currency?: string }) {
  const { language } = useLanguage();
  return <span className="nums">{amount === null || amount === undefined ? "–" : moneyText(amount, currency, language)}</span>;
}

export function Num({ value }: { value: number | null | undefined }) {
  const { language } = useLanguage();
  return <span className="nums">{value === null || value === undefined ? "–" : numberText(value, language)}</span>;
}
