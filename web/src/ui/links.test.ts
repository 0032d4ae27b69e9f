// Links in untrusted texts.
import { expect, test } from "vitest";
import { linkTarget } from "./links";

const ORIGIN = "http://127.0.0.1:8700";

test("web addresses are links, marked when they lead to another host", () => {
  expect(linkTarget("https://example.com/a?b", ORIGIN)).toEqual({ href: "https://example.com/a?b", foreign: true, host: "example.com" });
  expect(linkTarget("/runs/run_1", ORIGIN)).toEqual({ href: `${ORIGIN}/runs/run_1`, foreign: false, host: "127.0.0.1:8700" });
});

test.each(["javascript:alert(1)", " JaVaScRiPt:alert(1)", "data:text/html,<script>", "vbscript:x", "blob:x", "file:///etc/passwd", "http://", ""])(
  "%s is never a link",
  (address) => expect(linkTarget(address, ORIGIN)).toBeNull(),
);
