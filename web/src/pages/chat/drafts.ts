// What was written and not sent, per conversation, for as long as the tab lives.
const PREFIX = "greenroom.draft.";

export const drafts = {
  get: (conversation: string): string => sessionStorage.getItem(PREFIX + conversation) ?? "",
  set: (conversation: string, text: string): void => {
    if (text) sessionStorage.setItem(PREFIX + conversation, text);
    else sessionStorage.removeItem(PREFIX + conversation);
  },
};
