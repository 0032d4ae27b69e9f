// Questions with fields and buttons, from messages and from AG-UI events, and their answers.
import type { InteractionField, InteractionRequest, Json, JsonObject } from "@/api/types";
import { visibleValue } from "@/api/visible";
import { isObject, textOr, type InteractionEntry } from "./entry";

/** The values of the controls: a text, a switch, or chosen options. */
export type Draft = Record<string, string | boolean | string[]>;

/** A request with a title, buttons and fields; null if it is malformed. */
export function requestOf(value: unknown): InteractionRequest | null {
  const request = visibleValue(value);
  if (!isObject(request) || typeof request["interaction_id"] !== "string" || typeof request["title"] !== "string") return null;
  const list = (key: string): JsonObject[] => (Array.isArray(request[key]) ? request[key].filter(isObject) : []);
  return { ...request, fields: list("fields"), actions: list("actions"), fallback_text: textOr(request["fallback_text"], "") } as unknown as InteractionRequest;
}

export function entryOfRequest(value: unknown, id: string, runId: string | null): InteractionEntry | null {
  const request = requestOf(value);
  return request && runId !== null ? { kind: "interaction", id, runId, request } : null;
}

/** The form before anything is entered. */
export function draftOf(request: InteractionRequest): Draft {
  return Object.fromEntries((request.fields ?? []).map((field) => [field.id, initial(field)]));
}

function initial(field: InteractionField): Draft[string] {
  const given = field.default as Json;
  if (field.type === "boolean") return given === true;
  if (field.type === "multiselect") return Array.isArray(given) ? given.map(String) : [];
  if (given === null || given === undefined) return "";
  return typeof given === "object" ? JSON.stringify(given) : String(given);
}

/** The values to send; empty ones are left out. */
export function valuesOf(request: InteractionRequest, draft: Draft): JsonObject {
  const values: JsonObject = {};
  for (const field of request.fields ?? []) {
    const value = draft[field.id];
    if (value === undefined || value === "" || (Array.isArray(value) && value.length === 0)) continue;
    values[field.id] = field.type === "number" && typeof value === "string" ? numberOr(value) : value;
  }
  return values;
}

function numberOr(text: string): number | string {
  const number = Number(text);
  return text.trim() !== "" && Number.isFinite(number) ? number : text;
}

/** Required fields without a value. */
export function missing(request: InteractionRequest, draft: Draft): string[] {
  const values = valuesOf(request, draft);
  return (request.fields ?? []).filter((field) => field.required && !(field.id in values)).map((field) => field.id);
}
