// Copies a text to the clipboard, also over plain HTTP, where the clipboard API is missing.

export async function copyText(text: string): Promise<void> {
  if (window.isSecureContext) return navigator.clipboard.writeText(text);
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.style.position = "fixed";
  field.style.opacity = "0";
  // An open dialog traps the focus.
  (before?.closest("[role=dialog]") ?? document.body).append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  if (!done) throw new Error("the browser did not copy");
}
