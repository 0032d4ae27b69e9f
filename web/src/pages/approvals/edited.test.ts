// Other arguments for a call.
import { expect, test } from "vitest";
import type { Approval } from "../../api/types";
import { askedInput, editedArgs, inputText } from "./edited";

const base = { approval_id: "apr_1", nonce: "n", status: "pending", agent: "a", runner_id: "r", run_id: "run_1" };
const deletion = {
  ...base,
  action: "tool.call",
  target: { tool_name: "project_cli" },
  payload: { module: "calendar", method: "delete", input: { event_id: "rec_1" } },
} as unknown as Approval;
const fetching = { ...base, action: "tool.call", target: { tool_name: "web.fetch" }, payload: { url: "https://a.example" } } as unknown as Approval;

test("the input of a method is changed within the arguments of the project CLI", () => {
  expect(JSON.parse(inputText(deletion) ?? "")).toEqual({ event_id: "rec_1" });
  expect(editedArgs(deletion, '{"event_id": "rec_2"}')).toEqual({ module: "calendar", method: "delete", input: { event_id: "rec_2" } });
});

test("the arguments of other tools are changed as a whole", () => {
  expect(editedArgs(fetching, '{"url": "https://b.example"}')).toEqual({ url: "https://b.example" });
});

test("what says the same is not sent, and what is no object is refused", () => {
  expect(editedArgs(fetching, inputText(fetching) ?? "")).toBeNull();
  for (const text of ["", "{", "[1]", "null", '"x"']) expect(editedArgs(fetching, text)).toBeUndefined();
});

test("only calls have an input to change", () => {
  expect(inputText({ ...fetching, action: "message.send" })).toBeNull();
  expect(inputText({ ...fetching, action: "tool.input" })).toBeNull();
});

test("an allowed call shows what it had asked for", () => {
  const asked = { ...deletion, target: { tool_name: "project_cli", asked_payload: deletion.payload ?? {} } };
  expect(askedInput(asked)).toEqual({ event_id: "rec_1" });
  expect(askedInput(deletion)).toBeNull();
});
