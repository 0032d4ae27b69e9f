// Questions with fields and buttons.
import { expect, test } from "vitest";
import { entriesOfItem } from "./from-history";
import { draftOf, missing, requestOf, valuesOf } from "./interaction";
import { entryOfCustom } from "./live-events";

const request = {
  interaction_id: "order-1",
  kind: "form",
  title: "What may it be?",
  fallback_text: "Reply with tea or coffee.",
  fields: [
    { id: "drink", label: "Drink", type: "select", required: true, options: [{ value: "tea", label: "Tea" }], default: null },
    { id: "cups", label: "Cups", type: "number", required: false, options: [], default: 1 },
    { id: "extras", label: "Extras", type: "multiselect", required: false, options: [{ value: "milk", label: "Milk" }], default: null },
    { id: "hot", label: "Hot", type: "boolean", required: false, options: [], default: true },
  ],
  actions: [{ id: "order", label: "Order", style: "primary" }],
};

test("a stored question is shown as a form instead of its text", () => {
  const item = { item_id: "i1", run_id: "run_1", role: "assistant", text: "Reply with tea or coffee.", created_at: "2026-01-01T00:00:00Z", metadata: { interaction: request } };
  expect(entriesOfItem(item as never)).toEqual([{ kind: "interaction", id: "i1", runId: "run_1", request }]);
});

test("a live question is the form of its message", () => {
  const value = { run_id: "run_1", message_id: "run_1.2", request };
  expect(entryOfCustom("interaction.requested", value, "x", "run_1")).toEqual({ kind: "interaction", id: "run_1.2", runId: "run_1", request });
});

test("the answer has the values that were entered", () => {
  const parsed = requestOf(request);
  if (!parsed) throw new Error("no request");
  const draft = draftOf(parsed);
  expect(draft).toEqual({ drink: "", cups: "1", extras: [], hot: true });
  expect(missing(parsed, draft)).toEqual(["drink"]);
  expect(valuesOf(parsed, { ...draft, drink: "tea", extras: ["milk"], cups: "2" })).toEqual({ drink: "tea", cups: 2, extras: ["milk"], hot: true });
});

test("what is no question is none", () => {
  expect(requestOf({ title: "x" })).toBeNull();
  expect(requestOf("x")).toBeNull();
});
