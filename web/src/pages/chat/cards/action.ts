// The action of a card button: a module method, or none.
export interface CardAction {
  /** `module.method`. */
  method: string | null;
  input: Record<string, unknown>;
}

const METHOD = /^[a-z][\w-]{0,63}\.[a-z][\w-]{0,63}$/i;

export function actionOf(name: string, context: Record<string, unknown> | undefined): CardAction {
  return { method: METHOD.test(name) ? name : null, input: context ?? {} };
}

/** The press as AG-UI clients send it; null if the button names no action. */
export function pressOf(action: CardAction): { a2uiAction: { userAction: { name: string; context: Record<string, unknown> } } } | null {
  if (action.method === null) return null;
  return { a2uiAction: { userAction: { name: action.method, context: action.input } } };
}
