// Comparing runs.

import { describe, expect, it } from "vitest";
import { alignSteps, rightsChanges } from "./compare";
import { grant } from "./fixture";
import { say } from "./say";
import type { Entry } from "./timeline";

describe("rightsChanges", () => {
  it("names the keys that differ, settings individually", () => {
    const other = { ...grant, hash: "x", config: { model: "main" }, actions: { "message.send": "always" as const } };
    expect(rightsChanges({ ...grant, config: { model: "spare" } }, other)).toEqual([
      { key: "actions", left: { "message.send": "ask" }, right: { "message.send": "always" } },
      { key: "config.model", left: "spare", right: "main" },
    ]);
  });

  it("ignores the order of keys", () => {
    const one = { ...grant, risks: { read: "always" as const, write: "ask" as const } };
    const other = { ...grant, risks: { write: "ask" as const, read: "always" as const } };
    expect(rightsChanges(one, other)).toEqual([]);
  });
});

describe("alignSteps", () => {
  const entry = (kind: Entry["kind"], tool: string): Entry => ({
    id: tool, section: "work", kind, tone: "ok", title: say("runs.tool.title", { tool }), notes: [], detail: { type: "none" },
  });

  it("puts equal steps beside each other", () => {
    const parts = alignSteps([entry("tool", "a"), entry("tool", "b")], [entry("tool", "b"), entry("tool", "c")]);
    expect(parts.map((part) => `${part.side} ${part.left?.id ?? "-"} ${part.right?.id ?? "-"}`)).toEqual(["left a -", "both b b", "right - c"]);
  });
});
