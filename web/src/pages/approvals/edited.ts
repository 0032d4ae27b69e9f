// Other arguments for a call that waits for an approval.
import type { Approval, Json, JsonObject } from "../../api/types";
import { approvalInput } from "./sentence";

const TOOL_CALL = "tool.call";

/** The input as text to change; null for actions whose input cannot be changed. */
export function inputText(approval: Approval): string | null {
  return approval.action === TOOL_CALL ? JSON.stringify(approvalInput(approval), null, 2) : null;
}

/** The arguments to send for a changed text: null if it says the same, undefined if it is no JSON object. */
export function editedArgs(approval: Approval, text: string): JsonObject | null | undefined {
  const input = parsed(text);
  if (typeof input !== "object" || input === null || Array.isArray(input)) return undefined;
  const asked = approvalInput(approval);
  if (JSON.stringify(input) === JSON.stringify(asked)) return null;
  // The input of the project CLI is a part of its arguments.
  return asked === approval.payload ? input : { ...approval.payload, input };
}

/** The input that an allowed call asked for, if it was changed. */
export function askedInput(approval: Approval): JsonObject | null {
  const asked = approval.target?.["asked_payload"];
  if (typeof asked !== "object" || asked === null || Array.isArray(asked)) return null;
  return approvalInput({ ...approval, payload: asked });
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
