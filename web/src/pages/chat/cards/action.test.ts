// Actions of card buttons.
import { expect, test } from "vitest";
import { translate, type T } from "@/i18n";
import { actionOf, messageOf } from "./action";

const t: T = (key, values) => translate("en", key, values);

test("a module method becomes a message with its input", () => {
  const action = actionOf("calendar.delete", { event_id: "rec_1" });
  expect(messageOf(action, t)).toBe('Please do calendar.delete with {"event_id":"rec_1"}');
  expect(messageOf(actionOf("memory.read", undefined), t)).toBe("Please do memory.read");
});

test.each(["", "delete", "a.b.c", "javascript:alert(1)", "calendar.delete\nand all else", "../x.y"])("%j names nothing that could be done", (name) => {
  expect(messageOf(actionOf(name, { a: 1 }), t)).toBeNull();
});
