// Differences of texts and lists.

import { describe, expect, it } from "vitest";
import { diffLists, diffTexts } from "./diff";

const marked = (left: string, right: string) =>
  diffTexts(left, right).map(({ side, text }) => (side === "both" ? text : side === "left" ? `[-${text}-]` : `{+${text}+}`)).join("");

describe("diffTexts", () => {
  it("marks words that changed", () => {
    expect(marked("Lunch at noon is booked", "Lunch at one is booked")).toBe("Lunch at [-noon-]{+one+} is booked");
  });

  it("marks single characters of Chinese", () => {
    expect(marked("明天下午三点", "明天下午四点")).toBe("明天下午[-三-]{+四+}点");
  });

  it("does not match single words of unrelated texts", () => {
    expect(marked("please book: lunch", "hello: there you are")).toBe("[-please book: lunch-]{+hello: there you are+}");
  });

  it("treats whitespace between two changed words as changed", () => {
    expect(marked("the quick brown fox jumps", "the slow red fox jumps")).toBe("the [-quick brown-]{+slow red+} fox jumps");
  });

  it("returns one part for equal texts and none for empty ones", () => {
    expect(diffTexts("same", "same")).toEqual([{ side: "both", text: "same" }]);
    expect(diffTexts("", "")).toEqual([]);
  });

  it("contains both texts completely", () => {
    const [left, right] = ["a b\nc d e", "b\nx c e f"];
    const pieces = diffTexts(left, right);
    expect(pieces.filter((piece) => piece.side !== "right").map((piece) => piece.text).join("")).toBe(left);
    expect(pieces.filter((piece) => piece.side !== "left").map((piece) => piece.text).join("")).toBe(right);
  });

  it("compares texts of many words by lines, in bounded work", () => {
    const long = Array.from({ length: 3_000 }, (_, line) => `line ${String(line)} of left\n`);
    const other = long.map((line, index) => (index % 3 === 0 ? line.replace("left", "right") : line));
    const pieces = diffTexts(long.join(""), other.join(""));
    expect(pieces.some((piece) => piece.side === "both")).toBe(false);
    const few = diffTexts(long.slice(0, 900).join(""), other.slice(0, 900).join(""));
    expect(few.find((piece) => piece.side === "left")?.text).toBe("line 0 of left\n");
  });
});

describe("diffLists", () => {
  it("aligns steps that both lists have", () => {
    const parts = diffLists(["model", "tool", "text"], ["model", "text", "file"], (a, b) => a === b);
    expect(parts?.map((part) => `${part.side} ${String(part.left ?? part.right)}`)).toEqual(["both model", "left tool", "both text", "right file"]);
  });
});
