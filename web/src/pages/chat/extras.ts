// Entries without an AG-UI message, merged by position.
import type { Message } from "@ag-ui/core";
import type { Entry } from "./entry";

export interface Extra {
  /** The message that it follows; null: before all. */
  after: string | null;
  entry: Entry;
}

/** An extra follows the last entry of its message or of an earlier one. */
export function withExtras(said: Entry[], extras: Extra[], messages: readonly Readonly<Message>[]): Entry[] {
  const left = extras.filter((extra) => extra.after !== null);
  if (left.length === 0) return said;
  // A form replaces the text of its message.
  const forms = new Set(left.filter((extra) => extra.entry.kind === "interaction").map((extra) => extra.entry.id));
  const order = new Map(messages.map((message, index) => [message.id, index]));
  messages.forEach((message, index) => {
    if (message.role === "assistant") for (const call of message.toolCalls ?? []) order.set(call.id, index);
  });
  const merged: Entry[] = [];
  for (const entry of said.filter((one) => !forms.has(one.id))) {
    const place = order.get(entry.id) ?? 0;
    while (left[0] && (order.get(left[0].after ?? "") ?? -1) < place) merged.push((left.shift() as Extra).entry);
    merged.push(entry);
  }
  return [...merged, ...left.map((extra) => extra.entry)];
}
