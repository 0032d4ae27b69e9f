// A translatable text: its key and its values.

import type { Key, T } from "@/i18n";

export interface Say {
  key: Key;
  with?: Values;
}

/** A value may be a translatable text itself. */
export type Values = Record<string, string | number | Say>;

export function say(key: Key, values?: Values): Say {
  return values === undefined ? { key } : { key, with: values };
}

export function said(t: T, text: Say): string {
  const values = Object.entries(text.with ?? {}).map(([name, value]) => [name, typeof value === "object" ? said(t, value) : value]);
  return t(text.key, Object.fromEntries(values) as Record<string, string | number>);
}
