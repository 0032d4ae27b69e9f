// Actions for rows of a conversation.
import { createContext, useContext } from "react";
import type { JsonObject } from "@/api/types";
import type { CardAction } from "./cards/action";

export interface ChatActions {
  agent: string;
  /** `values` answer the question of a tool's server. */
  decide: (runId: string | null, approvalId: string, approved: boolean, values?: JsonObject | null) => void;
  cardAction: (action: CardAction) => void;
  /** A question of this run was answered. */
  answered: (runId: string, answer: JsonObject) => void;
  /** Puts a text back into the composer. */
  write: (text: string) => void;
}

export const ChatContext = createContext<ChatActions | null>(null);

export function useChat(): ChatActions {
  const actions = useContext(ChatContext);
  if (!actions) throw new Error("there is no conversation above");
  return actions;
}
