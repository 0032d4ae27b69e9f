// Entries of a run's outcome and deliveries.

import { ENDED, FAILED, type Delivery, type Story } from "@/api/types";
import { explainFailure } from "./explain";
import type { FactStep, Step } from "./fold";
import { text, time } from "./read";
import { say, type Say } from "./say";
import { cutKey } from "./steps";
import type { Entry, Tone } from "./timeline";

export function endEntries(story: Story, steps: readonly Step[]): Entry[] {
  const end = ending(story, steps);
  return [...(end === undefined ? [] : [end]), ...story.deliveries.map((delivery) => deliveryEntry(delivery))];
}

function ending(story: Story, steps: readonly Step[]): Entry | undefined {
  const { run } = story;
  if (!ENDED.has(run.status)) return undefined;
  const at = time(run.finished_at);
  const base = {
    id: "end", section: "end", kind: "end", title: say(`runs.status.${run.status}`),
    ...(at === undefined ? {} : { start: at, end: at }),
  } as const;
  const error = run.error ?? undefined;
  if (error === undefined) {
    const reason = text(steps.findLast((step): step is FactStep => step.kind === "end")?.data, "finish_reason");
    const isCut = reason !== undefined && !["stop", "tool_calls", "end_turn", ""].includes(reason);
    return { ...base, tone: isCut ? "warn" : "ok", notes: isCut ? [say(cutKey(reason), { reason })] : [], detail: { type: "none" } };
  }
  const why = explainFailure(error.code, run.agent);
  const notes: Say[] = [why.what, why.todo];
  if (error.retryable === true) notes.push(say("runs.end.retryable"));
  return {
    ...base, tone: FAILED.has(run.status) ? "bad" : "warn", hint: error.message, notes,
    detail: { type: "json", value: { code: error.code, message: error.message, retryable: error.retryable ?? false } },
  };
}

const DELIVERED = {
  pending: "live", claimed: "live", done: "ok", failed: "bad", unknown: "warn", discarded: "plain",
} as const satisfies Record<string, Tone>;

function deliveryEntry(delivery: Delivery): Entry {
  const status = delivery.status in DELIVERED ? (delivery.status as keyof typeof DELIVERED) : "unknown";
  const [start, end] = [time(delivery.created_at), time(delivery.updated_at)];
  const notes = [say(`runs.delivery.${status}`, { surface: delivery.surface })];
  if (delivery.attempts > 1) notes.push(say("runs.delivery.attempts", { count: delivery.attempts }));
  return {
    id: `delivery-${delivery.delivery_id}`, section: "out", kind: "delivery", tone: DELIVERED[status],
    title: say("runs.delivery.title", { surface: delivery.surface }), ...(delivery.error === null ? {} : { hint: delivery.error }), notes,
    ...(start === undefined ? {} : { start }), ...(end === undefined ? {} : { end }),
    detail: { type: "json", value: { ...delivery } },
  };
}
