// English texts of chat.
export const chat = {
  title: "Chat",
} as const;
