// Approvals as entries, from AG-UI interrupts and from stored approvals.
import type { Interrupt } from "@ag-ui/core";
import type { Approval, ApprovalSubject } from "@/api/types";
import { visibleValue } from "@/api/visible";
import { isObject, textOr, type ApprovalEntry, type Entry } from "./entry";

export interface Asking {
  runId: string | null;
  agent: string;
}

export function entryOfInterrupt(asked: Interrupt, { runId, agent }: Asking): ApprovalEntry {
  const interrupt = visibleValue(asked);
  const about = isObject(interrupt.metadata) ? interrupt.metadata : {};
  const target = isObject(about["target"]) ? about["target"] : {};
  return {
    kind: "approval",
    id: textOr(about["approval_id"], interrupt.id),
    interruptId: interrupt.id,
    callId: interrupt.toolCallId ?? textOr(target["tool_call_id"], null),
    runId,
    agent,
    action: textOr(about["action"], interrupt.reason),
    target,
    payload: isObject(about["payload"]) ? about["payload"] : {},
    subject: isObject(about["subject"]) ? (about["subject"] as ApprovalSubject) : null,
    expiresAt: interrupt.expiresAt ?? null,
    decision: null,
    held: false,
  };
}

export function entryOfApproval(approval: Approval): ApprovalEntry {
  return {
    kind: "approval",
    id: approval.approval_id,
    interruptId: null,
    callId: textOr(approval.target?.["tool_call_id"], null),
    runId: approval.run_id,
    agent: approval.agent,
    action: approval.action,
    target: approval.target ?? {},
    payload: approval.payload ?? {},
    subject: approval.subject ?? null,
    expiresAt: approval.expires_at,
    decision: approval.status === "pending" ? null : approval.status,
    held: false,
  };
}

/** Each approval follows its tool call, or comes at the end. */
export function withQuestions(entries: Entry[], questions: ApprovalEntry[]): Entry[] {
  if (questions.length === 0) return entries;
  const left = new Set(questions);
  const merged = entries.flatMap((entry): Entry[] => {
    if (entry.kind !== "tool") return [entry];
    const about = questions.filter((question) => left.has(question) && question.runId === entry.runId && question.callId === entry.callId);
    for (const question of about) left.delete(question);
    return [entry, ...about];
  });
  return [...merged, ...left];
}
