// The plan of an external harness: an activity of its run.
import { isObject, textOr, type PlanStep } from "./entry";

/** The type of the activity. */
export const PLAN = "PLAN";

export function stepsOf(content: unknown): PlanStep[] {
  const entries = isObject(content) ? content["entries"] : null;
  if (!Array.isArray(entries)) return [];
  return entries.filter(isObject).map((entry) => {
    const state = entry["status"];
    return { text: textOr(entry["content"], ""), state: state === "completed" || state === "in_progress" ? state : "pending" };
  });
}
