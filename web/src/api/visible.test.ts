import { describe, expect, it } from "vitest";
import { parseVisible, visibleText, visibleValue } from "./visible";

describe("visibleText", () => {
  it.each([
    ["pay \u202egnp.exe", "pay <U+202E>gnp.exe"],
    ["\u2066a\u2069\u200f\u061c", "<U+2066>a<U+2069><U+200F><U+061C>"],
    ["\x1b[2Jgone\x9b31m", "<U+001B>[2Jgone<U+009B>31m"],
    ["ad\u200bmin\ufeff", "ad<U+200B>min<U+FEFF>"],
    ["a\u200db", "a<U+200D>b"],
    ["one\ntwo\tthree\r\nfour", "one\ntwo\tthree\r\nfour".replace("\r\n", "\n")],
    ["over\rwritten", "over<U+000D>written"],
    ["\u{e0041}", "<U+E0041>"],
  ])("shows what is hidden in %j", (given, expected) => {
    expect(visibleText(given)).toBe(expected);
  });

  it.each(["שלום עולם", "مرحبا", "می\u200cخواهم", "👩\u200d👩\u200d👧", "❤\ufe0f", "报告", "é", ""])("leaves %s as it is", (text) => {
    expect(visibleText(text)).toBe(text);
  });
});

describe("parseVisible", () => {
  it("shows texts and keeps ids", () => {
    const text = JSON.stringify({ name: "a\u202eb", escaped: "\x1b[0m", conversation_id: "c\u202e", items: [{ text: "\u200b" }] });
    expect(parseVisible(text)).toEqual({
      name: "a<U+202E>b",
      escaped: "<U+001B>[0m",
      conversation_id: "c\u202e",
      items: [{ text: "<U+200B>" }],
    });
  });

  it("does the same for values", () => {
    expect(visibleValue([{ id: "\u202e", content: "\u202e" }])).toEqual([{ id: "\u202e", content: "<U+202E>" }]);
  });
});
