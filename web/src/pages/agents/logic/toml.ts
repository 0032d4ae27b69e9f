// Settings as TOML for the configuration file.

import type { AgentDetail, Json, JsonObject } from "@/api/types";

/** `[agents.NAME.config]` with every setting; null has no TOML and is omitted. */
export function configToml(agent: string, config: JsonObject): string {
  const lines = Object.entries(config)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${keyToml(key)} = ${typeof value === "string" && value.includes("\n") ? longToml(value) : valueToml(value)}`);
  return [`[agents.${keyToml(agent)}.config]`, ...lines].join("\n") + "\n";
}

/** A new agent with the runner, grant and settings of another. */
export function agentToml(name: string, from: Pick<AgentDetail, "runner_id" | "policy">, config: JsonObject): string {
  const { models, tools, modules, skills, actions } = from.policy;
  const rights = Object.entries({ models, tools, modules, skills, actions }).filter(([, value]) => Object.keys(value).length > 0);
  const grant = rights.length === 0 ? "" : `[agents.${keyToml(name)}.grant]\n${rights.map(([key, value]) => `${key} = ${valueToml(value)}\n`).join("")}\n`;
  return `[agents.${keyToml(name)}]\nrunner = ${valueToml(from.runner_id)}\n\n${grant}${configToml(name, config)}`;
}

export function keyToml(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : stringToml(key);
}

export function valueToml(value: Json): string {
  if (typeof value === "string") return stringToml(value);
  if (typeof value === "number") return numberToml(value);
  if (typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return `[${value.filter((one) => one !== null).map(valueToml).join(", ")}]`;
  const fields = Object.entries(value ?? {}).filter(([, inner]) => inner !== null);
  return fields.length === 0 ? "{}" : `{ ${fields.map(([key, inner]) => `${keyToml(key)} = ${valueToml(inner)}`).join(", ")} }`;
}

function numberToml(value: number): string {
  const text = String(value);
  return /e/i.test(text) && !text.includes(".") ? text.replace(/e/i, ".0e") : text;
}

function stringToml(text: string): string {
  return `"${escaped(text).replaceAll("\n", "\\n")}"`;
}

/** Multi-line strings stay multi-line; TOML ignores the first line break after the quotes. */
function longToml(text: string): string {
  return `"""\n${escaped(text)}"""`;
}

function escaped(text: string): string {
  return Array.from(text, (char) => {
    if (char === "\\") return "\\\\";
    if (char === '"') return '\\"';
    if (char === "\t") return "\\t";
    if (char === "\r") return "\\r";
    const code = char.codePointAt(0) ?? 0;
    const isControl = (code < 0x20 && char !== "\n") || code === 0x7f;
    return isControl ? `\\u${code.toString(16).padStart(4, "0")}` : char;
  }).join("");
}
