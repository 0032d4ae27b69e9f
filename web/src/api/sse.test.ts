// Frames of server-sent events.
import { expect, test } from "vitest";
import { FrameParser } from "./sse";

test("frames are complete however the text is split, and comments are skipped", () => {
  const parser = new FrameParser();
  expect(parser.push(": alive\n\nid: 1\nevent: a\nda")).toEqual([]);
  expect(parser.push('ta: {"x":1}\n\nid: 2\ndata: one\ndata: two\n\n')).toEqual([
    { event: "a", id: "1", data: '{"x":1}' },
    { event: "message", id: "2", data: "one\ntwo" },
  ]);
});
