// A snippet of a search cut into pieces that match and pieces that do not.

export interface Piece {
  text: string;
  hit: boolean;
}

/** Offsets count characters, as in the host, not UTF-16 units. */
export function pieces(snippet: string, places: readonly { start: number; end: number }[]): Piece[] {
  const characters = Array.from(snippet);
  const cut: Piece[] = [];
  let at = 0;
  const add = (end: number, hit: boolean) => {
    const text = characters.slice(at, end).join("");
    if (text) cut.push({ text, hit });
    at = Math.max(at, end);
  };
  for (const { start, end } of [...places].sort((a, b) => a.start - b.start)) {
    if (start > at) add(start, false);
    if (end > at) add(end, true);
  }
  add(characters.length, false);
  return cut;
}
