// A question of a tool's server: its form as fields, and what was entered as values.
import type { Approval, InteractionField, InteractionRequest, Json, JsonObject } from "../../api/types";

export const TOOL_INPUT = "tool.input";

/** The form; null for approvals that ask for no values. */
export function questionForm(approval: Approval): InteractionRequest | null {
  const schema = approval.payload?.["requested_schema"];
  if (approval.action !== TOOL_INPUT || !isObject(schema)) return null;
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const fields = Object.entries(properties).flatMap(([id, property]) => (isObject(property) ? [fieldOf(id, property, required.includes(id))] : []));
  return { interaction_id: approval.approval_id, title: "", fallback_text: "", fields };
}

/** The address to open; null for other questions, and for what is no web address. */
export function questionUrl(approval: Approval): string | null {
  const url = approval.action === TOOL_INPUT ? approval.payload?.["url"] : null;
  return typeof url === "string" && /^https?:\/\//.test(url) ? url : null;
}

export function questionText(approval: Approval): string {
  const message = approval.payload?.["message"];
  return typeof message === "string" ? message : "";
}

function fieldOf(id: string, property: JsonObject, required: boolean): InteractionField {
  const text = (key: string) => (typeof property[key] === "string" && property[key] !== "" ? property[key] : null);
  const label = text("title") ?? id;
  const field = { id, label, required, default: property["default"] ?? null, placeholder: text("description") };
  const items = isObject(property["items"]) ? property["items"] : null;
  if (property["type"] === "array" && items) return { ...field, type: "multiselect", options: optionsOf(items) };
  const options = optionsOf(property);
  if (options.length > 0) return { ...field, type: "select", options };
  if (property["type"] === "boolean") return { ...field, type: "boolean" };
  if (property["type"] === "integer" || property["type"] === "number") return { ...field, type: "number" };
  return { ...field, type: "text" };
}

/** `enum` with `enumNames`, or titled constants. */
function optionsOf(schema: JsonObject): { value: string; label: string }[] {
  const names = Array.isArray(schema["enumNames"]) ? schema["enumNames"] : [];
  if (Array.isArray(schema["enum"])) {
    return schema["enum"].map((value, at) => ({ value: String(value), label: String(names[at] ?? value) }));
  }
  const titled = schema["oneOf"] ?? schema["anyOf"];
  if (!Array.isArray(titled)) return [];
  return titled.flatMap((one) => (isObject(one) && typeof one["const"] === "string" ? [{ value: one["const"], label: String(one["title"] ?? one["const"]) }] : []));
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
