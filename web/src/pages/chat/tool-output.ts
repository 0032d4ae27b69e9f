// What metadata of a tool's result says to people; the same in history and in a live stream.
import type { Json, JsonObject } from "@/api/types";
import { isObject, textOr, type ToolEntry } from "./entry";

type Told = Pick<ToolEntry, "name" | "args" | "state" | "result" | "error" | "card">;

export function toolOutput(metadata: unknown, content: string | null): Told {
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

/** How a call is named to people: tools that reach modules are known by what they did there. */
export function toolLabel(name: string, args: Json): string {
  if (isObject(args) && typeof args["module"] === "string" && typeof args["method"] === "string") {
    return `${args["module"]}.${args["method"]}`;
  }
  return name;
}

/** The arguments that matter to people: of a module's method its input. */
export function toolInput(args: Json): Json {
  return isObject(args) && typeof args["module"] === "string" && args["input"] !== undefined ? args["input"] : args;
}
