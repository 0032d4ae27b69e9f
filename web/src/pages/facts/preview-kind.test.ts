// Preview kinds by type.
import { expect, test } from "vitest";
import { isMarkup, prettyJson, previewKind } from "./preview-kind";

test.each([
  ["text/plain; charset=utf-8", "text"],
  ["text/html", "text"],
  ["image/svg+xml", "text"],
  ["application/xhtml+xml", "text"],
  ["APPLICATION/JSON", "json"],
  ["application/ld+json", "json"],
  ["image/png", "image"],
  ["audio/mpeg", "audio"],
  ["application/pdf", "none"],
  ["video/mp4", "none"],
  ["", "none"],
])("%s is shown as %s", (mime, kind) => {
  expect(previewKind(mime)).toBe(kind);
});

test("only plain text is JSON by its name", () => {
  expect([previewKind("text/plain", "a.JSON"), previewKind("text/html", "a.json"), previewKind("application/octet-stream", "a.json")]).toEqual(["json", "text", "none"]);
});

test("JSON is indented, other text stays", () => {
  expect(prettyJson('{"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}');
  expect(prettyJson("{a")).toBe("{a");
});

test("types that a browser would run are recognised", () => {
  expect(["image/svg+xml", "text/html", "application/xhtml+xml", "text/plain"].map(isMarkup)).toEqual([true, true, true, false]);
});
