// Ordinary texts are parsed as Markdown; those that would block or crash the page are not.
import { expect, test } from "vitest";
import { isReadable } from "./markdown-guard";

test.each([
  ["a plain sentence", "Hello, how are you?"],
  ["an answer with everything", "# Title\n\n> quoted\n> > twice\n\n- one\n  - two\n    1. three\n\n`code` **bold** [link](https://example.org)"],
  ["a line across the page", `${"-".repeat(200)}\n${"* ".repeat(3)}`],
  ["a long table", "| a | b |\n|---|---|\n".concat("| 1 | 2 |\n".repeat(2_000))],
  ["a long list", "- point\n".repeat(900)],
])("%s is read", (_, text) => {
  expect(isReadable(text)).toBe(true);
});

test.each([
  ["quotes without end", `${">".repeat(6_000)}x`],
  ["quotes with spaces", `${"> ".repeat(60)}x`],
  ["lists in lists in one line", `${"- ".repeat(60)}x`],
  ["lists in lists by their indentation", `${" ".repeat(130)}- x`],
  ["emphasis without end", `${"*_".repeat(5_000)}x`],
  ["words between marks", "a*".repeat(15_000)],
  ["open brackets", "[".repeat(5_000)],
  ["what is too long", "word ".repeat(20_000)],
])("%s stays as it is", (_, text) => {
  expect(isReadable(text)).toBe(false);
});
