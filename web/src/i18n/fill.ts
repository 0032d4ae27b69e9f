// Fills values into a text: `{name}` is a value, `{count|run|runs}` a plural form.

export type Values = Record<string, string | number>;

const numbers = new Map<string, Intl.NumberFormat>();

function numberText(value: number, language: string): string {
  const format = numbers.get(language) ?? new Intl.NumberFormat(language);
  numbers.set(language, format);
  return format.format(value);
}

export function fill(text: string, language: string, values: Values = {}): string {
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g, (whole, name: string, one?: string, many?: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (one === undefined || many === undefined) {
      return typeof value === "number" ? numberText(value, language) : value;
    }
    return new Intl.PluralRules(language).select(Number(value)) === "one" ? one : many;
  });
}
