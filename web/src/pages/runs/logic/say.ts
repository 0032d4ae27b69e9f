// A text to be said in the reader's language: a key of the dictionary and what stands in it.

import type { Key, T } from "@/i18n";

export interface Say {
  key: Key;
  with?: Values;
}

/** What stands in a text may be a text itself. */
export type Values = Record<string, string | number | Say>;

export function say(key: Key, values?: Values): Say {
  return values === undefined ? { key } : { key, with: values };
}

export function said(t: T, text: Say): string {
  const values = Object.entries(text.with ?? {}).map(([name, value]) => [name, typeof value === "object" ? said(t, value) : value]);
  return t(text.key, Object.fromEntries(values) as Record<string, string | number>);
}
