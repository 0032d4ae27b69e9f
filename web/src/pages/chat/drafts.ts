// Unsent drafts per conversation, kept while the tab is open.
const PREFIX = "greenroom.draft.";

export const drafts = {
  get: (conversation: string): string => sessionStorage.getItem(PREFIX + conversation) ?? "",
  set: (conversation: string, text: string): void => {
    if (text) sessionStorage.setItem(PREFIX + conversation, text);
    else sessionStorage.removeItem(PREFIX + conversation);
  },
};
