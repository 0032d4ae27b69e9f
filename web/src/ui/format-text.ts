// Times, sizes and money as text in a language.

/** Cached: formats are expensive to create and are used in every row of a list. */
function kept<Format>(make: (language: string, options: object) => Format): (language: string, options: object) => Format {
  const made = new Map<string, Format>();
  return (language, options) => {
    const key = language + JSON.stringify(options);
    let format = made.get(key);
    if (!format) {
      format = make(language, options);
      made.set(key, format);
    }
    return format;
  };
}

const numberFormat = kept((language, options) => new Intl.NumberFormat(language, options));
const dateFormat = kept((language, options) => new Intl.DateTimeFormat(language, options));
const relativeFormat = kept((language, options) => new Intl.RelativeTimeFormat(language, options));

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function relativeText(at: number, now: number, language: string): string {
  const diff = at - now;
  const size = Math.abs(diff);
  const relative = relativeFormat(language, { numeric: "auto", style: "short" });
  if (size < 10 * SECOND) return relative.format(0, "second");
  if (size < MINUTE) return relative.format(Math.trunc(diff / SECOND), "second");
  if (size < HOUR) return relative.format(Math.trunc(diff / MINUTE), "minute");
  if (size < DAY) return relative.format(Math.trunc(diff / HOUR), "hour");
  if (size < 7 * DAY) return relative.format(Math.trunc(diff / DAY), "day");
  const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  return dateFormat(language, { month: "short", day: "numeric", ...(sameYear ? {} : { year: "numeric" }) }).format(at);
}

export function durationText(ms: number, language: string): string {
  const number = (value: number, digits: number) => numberFormat(language, { maximumFractionDigits: digits }).format(value);
  if (ms < 1) return `${number(ms, 2)} ms`;
  if (ms < SECOND) return `${number(ms, 0)} ms`;
  if (ms < MINUTE) return `${number(ms / SECOND, ms < 10 * SECOND ? 2 : 1)} s`;
  const [whole, part] = ms < HOUR ? [MINUTE, SECOND] : [HOUR, MINUTE];
  const [many, rest] = [Math.floor(ms / whole), Math.floor((ms % whole) / part)];
  const [large, small] = ms < HOUR ? ["min", "s"] : ["h", "min"];
  return rest === 0 ? `${many} ${large}` : `${many} ${large} ${rest} ${small}`;
}

export function bytesText(bytes: number, language: string): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${numberFormat(language, { maximumFractionDigits: digits }).format(value)} ${units[unit]}`;
}

/** Small sums keep their digits: a call that costs 0.0004 is not free. */
export function moneyText(amount: number, currency: string, language: string): string {
  const small = amount !== 0 && Math.abs(amount) < 0.1;
  const digits = small ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 2 };
  return numberFormat(language, { style: "currency", currency, ...digits }).format(amount);
}

export function numberText(value: number, language: string): string {
  return numberFormat(language, {}).format(value);
}

/** A time or a range, to the minute; by default in the browser's time zone. */
export function rangeText(start: string, end: string | undefined, language: string, timeZone?: string): string {
  const options = { weekday: "short", year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit" };
  const format = dateFormat(language, { ...options, timeZone });
  return end === undefined ? format.format(new Date(start)) : format.formatRange(new Date(start), new Date(end));
}

/** The exact time, to the second. */
export function exactText(at: Date, language: string): string {
  return dateFormat(language, { dateStyle: "medium", timeStyle: "medium" }).format(at);
}
