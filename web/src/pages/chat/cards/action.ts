// What a button of a card asks for: a method of a module, or nothing that could be done.
import type { T } from "@/i18n";

export interface CardAction {
  /** `module.method`; nothing else can be asked for. */
  method: string | null;
  input: Record<string, unknown>;
}

const METHOD = /^[a-z][\w-]{0,63}\.[a-z][\w-]{0,63}$/i;

export function actionOf(name: string, context: Record<string, unknown> | undefined): CardAction {
  return { method: METHOD.test(name) ? name : null, input: context ?? {} };
}

/** The message that asks the agent for it; null where there is nothing to ask for. */
export function messageOf(action: CardAction, t: T): string | null {
  if (action.method === null) return null;
  const hasInput = Object.keys(action.input).length > 0;
  if (!hasInput) return t("chat.cardActionAlone", { action: action.method });
  return t("chat.cardActionText", { action: action.method, input: JSON.stringify(action.input) });
}
