import { expect, test } from "vitest";
import type { Approval } from "../../api/types";
import { questionForm, questionUrl } from "./question";

const asked = (payload: object, action = "tool.input") => ({ approval_id: "apr_1", action, payload }) as unknown as Approval;

test("a form of MCP becomes fields", () => {
  const schema = {
    type: "object",
    required: ["name"],
    properties: {
      name: { type: "string", title: "Your name", description: "as on the card" },
      size: { type: "string", enum: ["s", "l"], enumNames: ["small", "large"], default: "l" },
      color: { type: "string", oneOf: [{ const: "r", title: "Red" }] },
      tags: { type: "array", items: { type: "string", enum: ["a", "b"] } },
      age: { type: "integer" },
      loud: { type: "boolean", default: true },
    },
  };
  const form = questionForm(asked({ mode: "form", message: "Who?", requested_schema: schema }));
  const fields = Object.fromEntries((form?.fields ?? []).map((field) => [field.id, field]));
  expect(fields["name"]).toMatchObject({ label: "Your name", required: true, type: "text", placeholder: "as on the card" });
  expect(fields["size"]).toMatchObject({ type: "select", default: "l", options: [{ value: "s", label: "small" }, { value: "l", label: "large" }] });
  expect(fields["color"]).toMatchObject({ type: "select", options: [{ value: "r", label: "Red" }] });
  expect(fields["tags"]).toMatchObject({ type: "multiselect", options: [{ value: "a" }, { value: "b" }] });
  expect(fields["age"]).toMatchObject({ type: "number", required: false });
  expect(fields["loud"]).toMatchObject({ type: "boolean", default: true });
});

test("an approval of a call has no form, and only a web address is a link", () => {
  expect(questionForm(asked({ requested_schema: {} }, "tool.call"))).toBeNull();
  expect(questionUrl(asked({ url: "https://pay.example/x" }))).toBe("https://pay.example/x");
  expect(questionUrl(asked({ url: "javascript:alert(1)" }))).toBeNull();
});
