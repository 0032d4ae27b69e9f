// Chinese texts of chat.
import type { chat as en } from "../en/chat";
import type { SameKeys } from "../texts";

export const chat: SameKeys<typeof en> = {
  title: "对话",
};
