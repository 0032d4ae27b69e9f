// Calls of external harnesses as what is shown of them.
import { expect, test } from "vitest";
import type { ToolEntry } from "./entry";
import { diffLines, harnessCall } from "./harness-call";

const entry: ToolEntry = { kind: "tool", id: "c", callId: "c", runId: "r", name: "edit", args: null, state: "done", result: null, error: null, card: null };

test("a call of a harness has its command, paths, changes and output", () => {
  const args = { title: "Edit a.txt", kind: "edit", input: { command: ["ls", "-l"] }, locations: ["/w/a.txt"] };
  const changes = [{ path: "/w/a.txt", old_text: null, new_text: "n" }];
  const shown = harnessCall({ ...entry, args, result: JSON.stringify({ changes, text: "done" }) });
  expect(shown).toEqual({ title: "Edit a.txt", command: "ls -l", paths: ["/w/a.txt"], changes: [{ path: "/w/a.txt", before: "", after: "n" }], output: "done" });
  const failed = harnessCall({ ...entry, args, error: { message: "no", details: { output: { stdout: "printed" } } } });
  expect(failed?.output).toBe("printed");
  expect(harnessCall({ ...entry, args: { module: "calendar" } })).toBeNull();
});

test("a diff shows changed lines with those around them", () => {
  const before = Array.from({ length: 20 }, (_, index) => `line ${index}`).join("\n");
  const lines = diffLines({ path: "a", before, after: before.replace("line 10", "other") });
  expect(lines.map(({ side, text }) => `${side} ${text}`.trim())).toEqual([
    "gap", "both line 7", "both line 8", "both line 9", "left line 10", "right other", "both line 11", "both line 12", "both line 13", "gap",
  ]);
  expect(diffLines({ path: "a", before: "", after: "x\n" })).toEqual([{ side: "right", text: "x" }]);
});
