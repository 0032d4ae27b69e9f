// Comparison of two runs: aligned steps and differences of their grants.

import type { Grant, Json } from "@/api/types";
import { diffLists, type Part } from "./diff";
import type { Entry } from "./timeline";

export interface RightsChange {
  key: string;
  left: Json | undefined;
  right: Json | undefined;
}

/** Keys of two grants that differ; the config counts key by key. */
export function rightsChanges(left: Grant | null, right: Grant | null): RightsChange[] {
  const [a, b] = [flat(left), flat(right)];
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
  return keys
    .filter((key) => stable(a[key]) !== stable(b[key]))
    .map((key) => ({ key, left: a[key], right: b[key] }));
}

function flat(grant: Grant | null): Record<string, Json> {
  if (grant === null) return {};
  const settings = Object.entries(grant.config ?? {}).map(([key, value]) => [`config.${key}`, value] as const);
  const rights = Object.entries(grant).filter(([key]) => !["hash", "agent", "config"].includes(key));
  return { ...(Object.fromEntries(rights) as Record<string, Json>), ...Object.fromEntries(settings) };
}

/** JSON with sorted keys, so that equal values give equal texts. */
function stable(value: Json | undefined): string {
  if (Array.isArray(value)) return `[${value.map(stable).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const fields = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${stable(value[key])}`);
    return `{${fields.join(",")}}`;
  }
  return JSON.stringify(value) ?? "undefined";
}

/** Steps that get a row: those of models, tools and the host. */
export function comparable(entries: readonly Entry[]): Entry[] {
  return entries.filter((entry) => entry.section === "work" && entry.kind !== "live");
}

export function alignSteps(left: readonly Entry[], right: readonly Entry[]): Part<Entry>[] {
  const name = (entry: Entry) => `${entry.kind} ${entry.title.key} ${JSON.stringify(entry.title.with ?? {})}`;
  const parts = diffLists(left, right, (a, b) => name(a) === name(b));
  return parts ?? [...left.map((entry): Part<Entry> => ({ side: "left", left: entry })), ...right.map((entry): Part<Entry> => ({ side: "right", right: entry }))];
}
