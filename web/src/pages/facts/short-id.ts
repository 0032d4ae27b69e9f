// Long ids with the middle left out: the end distinguishes them.

const SHOWN_WHOLE = 22;

export function shortId(id: string): string {
  const characters = Array.from(id);
  if (characters.length <= SHOWN_WHOLE) return id;
  const prefix = /^[a-z]{2,5}_/.exec(id)?.[0] ?? characters.slice(0, 6).join("");
  return `${prefix}…${characters.slice(-8).join("")}`;
}
