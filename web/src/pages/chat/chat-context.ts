// Actions for rows of a conversation.
import { createContext, useContext } from "react";
import type { CardAction } from "./cards/action";

export interface ChatActions {
  agent: string;
  decide: (runId: string | null, approvalId: string, approved: boolean) => void;
  cardAction: (action: CardAction) => void;
  /** Looks for runs that were started elsewhere. */
  refresh: () => void;
  /** Puts a text back into the composer. */
  write: (text: string) => void;
}

export const ChatContext = createContext<ChatActions | null>(null);

export function useChat(): ChatActions {
  const actions = useContext(ChatContext);
  if (!actions) throw new Error("there is no conversation above");
  return actions;
}
