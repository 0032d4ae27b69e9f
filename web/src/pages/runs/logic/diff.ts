// The difference of two lists or texts, as common and distinct parts.

export type Side = "both" | "left" | "right";

export interface Part<T> {
  side: Side;
  left?: T;
  right?: T;
}

export interface Piece {
  side: Side;
  text: string;
}

/** Maximum cells of the table; beyond it, words become lines and lines become blocks. */
const CELLS_MAX = 4_000_000;

/** By the longest common subsequence; `null` if the lists are too long. */
export function diffLists<T>(left: readonly T[], right: readonly T[], same: (a: T, b: T) => boolean): Part<T>[] | null {
  let [start, leftEnd, rightEnd] = [0, left.length, right.length];
  const equal = (i: number, j: number) => same(left[i] as T, right[j] as T);
  while (start < leftEnd && start < rightEnd && equal(start, start)) start += 1;
  while (leftEnd > start && rightEnd > start && equal(leftEnd - 1, rightEnd - 1)) {
    leftEnd -= 1;
    rightEnd -= 1;
  }
  const [rows, columns] = [leftEnd - start, rightEnd - start];
  if (rows * columns > CELLS_MAX) return null;
  const width = columns + 1;
  const lengths = new Uint32Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i -= 1) {
    for (let j = columns - 1; j >= 0; j -= 1) {
      const here = i * width + j;
      lengths[here] = equal(start + i, start + j)
        ? (lengths[here + width + 1] ?? 0) + 1
        : Math.max(lengths[here + width] ?? 0, lengths[here + 1] ?? 0);
    }
  }
  const parts: Part<T>[] = [];
  const both = (i: number, j: number) => parts.push({ side: "both", left: left[i] as T, right: right[j] as T });
  for (let i = 0; i < start; i += 1) both(i, i);
  let [i, j] = [0, 0];
  while (i < rows || j < columns) {
    const here = i * width + j;
    if (i < rows && j < columns && equal(start + i, start + j)) {
      both(start + i, start + j);
      i += 1;
      j += 1;
    } else if (j >= columns || (i < rows && (lengths[here + width] ?? 0) >= (lengths[here + 1] ?? 0))) {
      parts.push({ side: "left", left: left[start + i] as T });
      i += 1;
    } else {
      parts.push({ side: "right", right: right[start + j] as T });
      j += 1;
    }
  }
  for (let k = 0; leftEnd + k < left.length; k += 1) both(leftEnd + k, rightEnd + k);
  return parts;
}

/** Words, single Chinese characters and whitespace. */
function words(text: string): string[] {
  return text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}

/** Whitespace and punctuation between two changes belong to the change. */
function joined(pieces: readonly Piece[]): Piece[] {
  const all = pieces.reduce((sum, piece) => sum + piece.text.length, 0);
  const common = pieces.reduce((sum, piece) => sum + (piece.side === "both" ? letters(piece.text) : 0), 0);
  const isOther = common * 8 < all;
  const changes: { both: string; left: string; right: string }[] = [{ both: "", left: "", right: "" }];
  pieces.forEach((piece, index) => {
    const last = changes.at(-1) as (typeof changes)[number];
    const isBetween = index > 0 && index < pieces.length - 1 && letters(piece.text) === 0;
    if (piece.side !== "both") last[piece.side] += piece.text;
    else if (isOther || isBetween) {
      last.left += piece.text;
      last.right += piece.text;
    } else changes.push({ both: piece.text, left: "", right: "" });
  });
  const sides = ["both", "left", "right"] as const;
  return changes.flatMap((change) => sides.filter((side) => change[side] !== "").map((side) => ({ side, text: change[side] })));
}

function letters(text: string): number {
  return text.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
}

/** By words, or by lines if too long, or as two blocks. */
export function diffTexts(left: string, right: string): Piece[] {
  const same = (a: string, b: string) => a === b;
  const parts =
    diffLists(words(left), words(right), same) ?? diffLists(left.split(/(?<=\n)/), right.split(/(?<=\n)/), same);
  if (parts === null) return [{ side: "left", text: left }, { side: "right", text: right }];
  const pieces: Piece[] = [];
  for (const part of parts) {
    const text = part.left ?? part.right ?? "";
    const last = pieces.at(-1);
    if (last?.side === part.side) last.text += text;
    else pieces.push({ side: part.side, text });
  }
  return pieces.length > 1 ? joined(pieces) : pieces;
}
