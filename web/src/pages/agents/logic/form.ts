// The form of an agent's settings: fields from the runner's schema, input and validation.

import type { FormItem, I18nText, Json, JsonObject } from "@/api/types";
import type { Language } from "@/i18n";
import { say, type Say } from "@/pages/runs/logic/say";

export type Control = "line" | "lines" | "whole" | "number" | "switch" | "choice" | "list" | "model" | "json";

export interface Field {
  name: string;
  label: string;
  description: string;
  control: Control;
  required: boolean;
  fallback: Json | undefined;
  options: { value: string; label: string }[];
  min?: number;
  max?: number;
}

/** The value of a control: typed text or a boolean; empty means the default. */
export type Draft = Record<string, string | boolean>;

const CONTROLS: Record<string, Control> = {
  string: "line", text: "lines", "prompt-editor": "lines", integer: "whole", float: "number", number: "number", boolean: "switch",
  select: "choice", "array[string]": "list", "model-selector": "model", "llm-model-selector": "model", json: "json", object: "json",
};

/** The text in a language, else in English, else in any. */
export function localText(text: I18nText | null | undefined, language: Language): string {
  if (text === null || text === undefined) return "";
  if (typeof text === "string") return text;
  const wanted = language === "zh" ? ["zh_Hans", "zh_CN", "zh_Hant", "zh"] : ["en_US", "en"];
  const found = [...wanted, "en_US", "en"].map((locale) => text[locale]).find((one) => one !== undefined && one !== null);
  return found ?? Object.values(text).find((one) => one !== null) ?? "";
}

export function fieldsOf(schema: readonly FormItem[], language: Language, models: readonly string[]): Field[] {
  return schema.map((item) => {
    const control = CONTROLS[item.type] ?? (item.options?.length ? "choice" : "line");
    const options = (item.options ?? []).map((option) => ({ value: option.name, label: localText(option.label, language) || option.name }));
    return {
      name: item.name, label: localText(item.label, language) || item.name, description: localText(item.description, language), control,
      required: item.required ?? false, fallback: item.default ?? undefined,
      options: control === "model" ? models.map((name) => ({ value: name, label: name })) : options,
      ...(typeof item.minimum === "number" ? { min: item.minimum } : {}), ...(typeof item.maximum === "number" ? { max: item.maximum } : {}),
    };
  });
}

/** Controls filled with the current settings; unset ones are empty. */
export function draftOf(fields: readonly Field[], config: JsonObject): Draft {
  return Object.fromEntries(fields.map((field) => [field.name, typed(field, config[field.name])]));
}

function typed(field: Field, value: Json | undefined): string | boolean {
  if (field.control === "switch") return typeof value === "boolean" ? value : field.fallback === true;
  if (value === undefined || value === null) return "";
  if (field.control === "list" && Array.isArray(value)) return value.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join("\n");
  if (field.control === "json") return JSON.stringify(value, null, 2);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export interface Checked {
  config: JsonObject;
  problems: Record<string, Say>;
}

/** The settings of a draft, merged over keys that the form does not know; and errors by field. */
export function checked(fields: readonly Field[], draft: Draft, before: JsonObject): Checked {
  const known = new Set(fields.map((field) => field.name));
  const config: JsonObject = Object.fromEntries(Object.entries(before).filter(([key]) => !known.has(key)));
  const problems: Record<string, Say> = {};
  for (const field of fields) {
    const value = draft[field.name] ?? "";
    if (typeof value === "boolean") {
      if (value !== (field.fallback === true) || before[field.name] !== undefined) config[field.name] = value;
      continue;
    }
    if (value.trim() === "") {
      const wasEmpty = before[field.name] === "" && field.control !== "list";
      if (field.required && (field.fallback === undefined || field.fallback === null)) problems[field.name] = say("agents.form.required");
      else if (wasEmpty) config[field.name] = "";
      continue;
    }
    const read = parse(field, value);
    if ("problem" in read) problems[field.name] = read.problem;
    else config[field.name] = read.value;
  }
  return { config, problems };
}

type Read = { value: Json } | { problem: Say };

function parse(field: Field, text: string): Read {
  switch (field.control) {
    case "whole":
    case "number":
      return parseNumber(field, text.trim());
    case "list":
      return { value: text.split("\n").map((line) => line.trim()).filter((line) => line !== "") };
    case "json":
      return parseJson(text);
    case "choice":
      return field.options.some((option) => option.value === text) ? { value: text } : { problem: say("agents.form.choice") };
    default:
      return { value: text };
  }
}

function parseNumber(field: Field, text: string): Read {
  const value = Number(text);
  if (!Number.isFinite(value)) return { problem: say("agents.form.number") };
  if (field.control === "whole" && !Number.isSafeInteger(value)) return { problem: say("agents.form.whole") };
  if (field.min !== undefined && value < field.min) return { problem: say("agents.form.min", { min: field.min }) };
  if (field.max !== undefined && value > field.max) return { problem: say("agents.form.max", { max: field.max }) };
  return { value };
}

function parseJson(text: string): Read {
  try {
    return { value: JSON.parse(text) as Json };
  } catch (error) {
    return { problem: say("agents.form.json", { reason: error instanceof Error ? error.message : "" }) };
  }
}
