// Snippets are cut at characters.
import { expect, test } from "vitest";
import { pieces } from "./highlight";

test("matches are split out, also after surrogate pairs", () => {
  expect(pieces("😀数据库 ok", [{ start: 1, end: 4 }])).toEqual([
    { text: "😀", hit: false },
    { text: "数据库", hit: true },
    { text: " ok", hit: false },
  ]);
});

test("overlapping, out-of-range or unordered ranges repeat nothing", () => {
  const cut = pieces("abcdef", [{ start: 4, end: 99 }, { start: 1, end: 3 }, { start: 2, end: 3 }]);
  expect(cut.map((piece) => piece.text).join("")).toBe("abcdef");
  expect(cut.filter((piece) => piece.hit).map((piece) => piece.text)).toEqual(["bc", "ef"]);
});

test("without a match the snippet is one piece", () => {
  expect(pieces("abc", [])).toEqual([{ text: "abc", hit: false }]);
});
