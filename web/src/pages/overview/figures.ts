// Numbers as short texts.

/** 1,234,567 as 1.2M, or 123万 in Chinese. */
export function compactText(value: number, language: string): string {
  return new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

export function percentText(share: number, language: string): string {
  const digits = share > 0 && share < 0.01 ? 2 : share < 0.1 ? 1 : 0;
  return new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: digits }).format(share);
}

/** A rate keeps two digits that mean something: 0.017 is not 0. */
export function rateText(rate: number, language: string): string {
  return new Intl.NumberFormat(language, rate < 1 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 1 }).format(rate);
}

/** A moment on the axis of a chart: the time, or the day where the range is long. */
export function momentText(seconds: number, language: string, isLong: boolean): string {
  const format: Intl.DateTimeFormatOptions = isLong
    ? { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }
    : { hour: "2-digit", minute: "2-digit" };
  return new Intl.DateTimeFormat(language, format).format(seconds * 1000);
}
