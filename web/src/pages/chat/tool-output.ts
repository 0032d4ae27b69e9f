// The displayed part of a tool result's metadata, in history and in live streams.
import type { Json, JsonObject } from "@/api/types";
import { isObject, textOr, type ToolEntry } from "./entry";

type ToolOutput = Pick<ToolEntry, "name" | "args" | "state" | "result" | "error" | "card">;

export function toolOutput(metadata: unknown, content: string | null): ToolOutput {
  const about = isObject(metadata) ? metadata : {};
  const output = isObject(about["tool_agent_output"]) ? about["tool_agent_output"] : {};
  const error = errorOf(output["error"] ?? about["error"]);
  const failed = output["status"] === "failure" || error !== null;
  return {
    name: textOr(output["tool_name"], null) ?? textOr(about["tool_name"], "tool"),
    args: output["tool_call_args"] ?? null,
    state: failed ? "failed" : "done",
    result: content,
    error,
    card: cardOf(about["ui_schema"]),
  };
}

function errorOf(error: Json | undefined): JsonObject | null {
  if (error === null || error === undefined) return null;
  return isObject(error) ? error : { message: typeof error === "string" ? error : JSON.stringify(error) };
}

function cardOf(schema: Json | undefined): Json[] | null {
  if (!isObject(schema) || schema["format"] !== "a2ui") return null;
  const operations = schema["operations"];
  return Array.isArray(operations) ? operations : null;
}

/** Display name of a call: module methods are shown by their own name. */
export function toolLabel(name: string, args: Json): string {
  if (isObject(args) && typeof args["module"] === "string" && typeof args["method"] === "string") {
    return `${args["module"]}.${args["method"]}`;
  }
  return name;
}

/** The displayed arguments: of a module method its input. */
export function toolInput(args: Json): Json {
  return isObject(args) && typeof args["module"] === "string" && args["input"] !== undefined ? args["input"] : args;
}
