// The action of a card button: a module method, or none.
import type { T } from "@/i18n";

export interface CardAction {
  /** `module.method`. */
  method: string | null;
  input: Record<string, unknown>;
}

const METHOD = /^[a-z][\w-]{0,63}\.[a-z][\w-]{0,63}$/i;

export function actionOf(name: string, context: Record<string, unknown> | undefined): CardAction {
  return { method: METHOD.test(name) ? name : null, input: context ?? {} };
}

/** The message that requests the action; null without one. */
export function messageOf(action: CardAction, t: T): string | null {
  if (action.method === null) return null;
  const hasInput = Object.keys(action.input).length > 0;
  if (!hasInput) return t("chat.cardActionAlone", { action: action.method });
  return t("chat.cardActionText", { action: action.method, input: JSON.stringify(action.input) });
}
