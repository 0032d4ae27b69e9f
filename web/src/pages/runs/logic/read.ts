// Reads untyped JSON without trusting its shape.

import type { Json, JsonObject } from "@/api/types";

export function object(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined;
}

export function field(value: unknown, key: string): Json | undefined {
  return object(value)?.[key];
}

export function text(value: unknown, key: string): string | undefined {
  const found = field(value, key);
  return typeof found === "string" ? found : undefined;
}

export function number(value: unknown, key: string): number | undefined {
  const found = field(value, key);
  return typeof found === "number" && Number.isFinite(found) ? found : undefined;
}

/** Milliseconds since 1970, or undefined for an invalid time. */
export function time(at: string | null | undefined): number | undefined {
  if (at === null || at === undefined) return undefined;
  const ms = Date.parse(at);
  return Number.isNaN(ms) ? undefined : ms;
}

/** The text of a message, whose content is a text or a list of parts. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => text(part, "text") ?? "").join("");
}

/** Cuts a text for one line. */
export function short(value: string, max: number): string {
  const line = value.replace(/\s+/g, " ").trim();
  const chars = Array.from(line);
  return chars.length <= max ? line : `${chars.slice(0, max - 1).join("")}…`;
}
