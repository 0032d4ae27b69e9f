// Actions of card buttons.
import { expect, test } from "vitest";
import { actionOf, pressOf } from "./action";

test("a module method is pressed with its input", () => {
  const action = actionOf("calendar.delete", { event_id: "rec_1" });
  expect(pressOf(action)).toEqual({ a2uiAction: { userAction: { name: "calendar.delete", context: { event_id: "rec_1" } } } });
  expect(pressOf(actionOf("memory.read", undefined))).toEqual({ a2uiAction: { userAction: { name: "memory.read", context: {} } } });
});

test.each(["", "delete", "a.b.c", "javascript:alert(1)", "calendar.delete\nand all else", "../x.y"])("%j names nothing that could be done", (name) => {
  expect(pressOf(actionOf(name, { a: 1 }))).toBeNull();
});
