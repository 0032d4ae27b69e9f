// Calls of external harnesses as what is shown of them.
import { expect, test } from "vitest";
import type { Approval } from "@/api/types";
import { diffLines, harnessCall, harnessQuestion, type ShownCall } from "./harness-call";

const entry: ShownCall = { args: null, result: null, error: null };

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

test("a question shows the command, the paths and each change", () => {
  const fields = [{ name: "command", value: "ls" }, { name: "path", value: "/a\n/b" }, { name: "/c", value: "new", before: "old" }];
  const approval = { action: "harness.edit", target: { title: "Edit" }, payload: {}, subject: { fields, records: [], left_out: 0 } } as unknown as Approval;
  const change = { path: "/c", before: "old", after: "new" };
  expect(harnessQuestion(approval)).toEqual({ title: "Edit", command: "ls", paths: ["/a", "/b"], changes: [change], output: null });
});
