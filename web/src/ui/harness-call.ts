// A tool call of an external harness: what it says of itself, in the form of the Agent Client Protocol.
import { diffLists } from "@/pages/runs/logic/diff";
import type { Approval, Json, JsonObject } from "@/api/types";

/** A call and how it ended. */
export interface ShownCall {
  args: Json;
  /** The JSON text of its result. */
  result: string | null;
  error: JsonObject | null;
}

export interface FileChange {
  path: string;
  before: string;
  after: string;
}

export interface HarnessCall {
  title: string;
  command: string | null;
  paths: string[];
  changes: FileChange[];
  /** What it printed or said. */
  output: string | null;
}

export interface DiffLine {
  side: "both" | "left" | "right" | "gap";
  text: string;
}

/** Common lines that are shown around a change. */
const AROUND = 3;

/** Null if it is a call of another kind. */
export function harnessCall(entry: ShownCall): HarnessCall | null {
  const { args } = entry;
  if (!isObject(args) || typeof args["kind"] !== "string" || typeof args["title"] !== "string") return null;
  const details = entry.error ? entry.error["details"] : parsed(entry.result);
  const result = isObject(details) ? details : {};
  const input = isObject(args["input"]) ? args["input"] : {};
  const command = input["command"] ?? input["cmd"];
  const paths = Array.isArray(result["locations"]) ? result["locations"] : args["locations"];
  return {
    title: args["title"],
    command: Array.isArray(command) ? command.map(String).join(" ") : textOr(command, null),
    paths: Array.isArray(paths) ? paths.map(String) : [],
    changes: changesOf(result["changes"]),
    output: printed(result["output"]) ?? textOr(result["text"], null) ?? (result["output"] ? JSON.stringify(result["output"], null, 2) : null),
  };
}

/** What a harness asks to do. */
export function harnessQuestion(approval: Approval): HarnessCall {
  const fields = approval.subject?.fields ?? [];
  const value = (name: string) => fields.find((field) => field.name === name)?.value ?? null;
  const changes = fields.filter((field) => field.name !== "command" && field.name !== "path");
  return {
    title: textOr(approval.target?.["title"], ""),
    command: value("command"),
    paths: value("path")?.split("\n") ?? [],
    changes: changes.map((field) => ({ path: field.name, before: field.before ?? "", after: field.value })),
    output: textOr(approval.payload?.["text"], null),
  };
}

/** The lines of a change; long common parts are left out. */
export function diffLines({ before, after }: FileChange): DiffLine[] {
  const [left, right] = [linesOf(before), linesOf(after)];
  const parts = diffLists(left, right, (one, other) => one === other);
  if (!parts) return [...left.map((text): DiffLine => ({ side: "left", text })), ...right.map((text): DiffLine => ({ side: "right", text }))];
  const lines = parts.map((part): DiffLine => ({ side: part.side, text: part.right ?? part.left ?? "" }));
  const near = lines.map((_, index) => lines.slice(Math.max(0, index - AROUND), index + AROUND + 1).some((line) => line.side !== "both"));
  return lines.flatMap((line, index) => {
    if (near[index]) return [line];
    return index === 0 || near[index - 1] ? [{ side: "gap", text: "" }] : [];
  });
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function changesOf(changes: unknown): FileChange[] {
  if (!Array.isArray(changes)) return [];
  return changes.filter(isObject).map((change) => ({
    path: textOr(change["path"], ""),
    before: textOr(change["old_text"], ""),
    after: textOr(change["new_text"], ""),
  }));
}

function printed(output: unknown): string | null {
  if (typeof output === "string") return output;
  if (!isObject(output)) return null;
  return textOr(output["formatted_output"], null) ?? textOr(output["stdout"], null);
}

function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOr<Otherwise>(value: unknown, otherwise: Otherwise): string | Otherwise {
  return typeof value === "string" ? value : otherwise;
}
