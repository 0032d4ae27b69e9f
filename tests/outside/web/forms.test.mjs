// Questions with fields and buttons in the chat.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chooseAgent, finish, gone, launch, open, say, see, seriousProblems, signedIn } from "./browser.mjs";
import { Host } from "./host.mjs";

let browser, host;
before(async () => {
  host = await Host.start();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await host?.end();
});

const SCRIPT = "<img src=x onerror=\"document.title='owned'\">";
const request = {
  interaction_id: "order-1",
  title: `What may it be? ${SCRIPT}`,
  description: "One cup each",
  fallback_text: "Reply with tea or coffee.",
  fields: [
    { id: "drink", label: "Drink", type: "select", required: true, options: [{ value: "tea", label: "Tea" }, { value: "coffee", label: "Coffee" }] },
    { id: "cups", label: "Cups", type: "number", default: 1 },
    { id: "extras", label: "Extras", type: "multiselect", options: [{ value: "milk", label: "Milk" }, { value: "sugar", label: "Sugar" }] },
    { id: "note", label: "Note", type: "textarea" },
    { id: "hot", label: "Hot", type: "boolean" },
  ],
  actions: [{ id: "order", label: "Order", style: "primary" }, { id: "cancel", label: "Cancel", style: "danger" }],
};
const ask = [["result", "message.completed", { message: { role: "assistant", content: request.fallback_text, metadata: { interaction: request } } }], ["end"]];
const form = (page) => page.locator("[data-kind=interaction]");
const answers = (page) => page.locator("[data-kind=answer]");

// The whole form and what follows it: rows outside the view are not rendered.
const TALL = { viewport: { width: 1280, height: 1600 } };

test("a question is a form instead of its text, and its answer reaches the agent once", async () => {
  const page = await signedIn(browser, host, TALL);
  await open(page, "/chat");
  await chooseAgent(page, "stage");
  await say(page, ask);
  await see(form(page).getByText("One cup each"));
  assert.equal(await answers(page).count(), 0, "the text is for readers without forms");
  assert.deepEqual(await seriousProblems(page), []);
  const order = form(page).getByRole("button", { name: "Order" });
  await order.click();
  await see(form(page).getByText("Please fill in this field."));
  await form(page).getByRole("combobox", { name: "Drink" }).selectOption("tea");
  await form(page).getByRole("textbox", { name: "Cups" }).fill("2");
  await form(page).getByRole("checkbox", { name: "Milk" }).check();
  await form(page).getByRole("textbox", { name: "Note" }).fill("hot, please");
  await form(page).getByRole("switch").click();
  await order.click();
  await see(form(page).getByText("Answered: Order"));
  const expected = { action_id: "order", interaction_id: "order-1", values: { cups: 2, drink: "tea", extras: ["milk"], hot: true, note: "hot, please" } };
  await see(answers(page).getByText("Got {"));
  const got = (await answers(page).first().textContent()).trim();
  assert.deepEqual(JSON.parse(got.slice("Got ".length).replaceAll(/[“”]/g, '"')), expected);
  assert.equal(await order.count(), 0);
  // Stored, it is the same and cannot be answered again.
  await page.reload();
  await see(form(page).getByText("Answered: Order"));
  assert.equal(await form(page).getByRole("button").count(), 0);
  await finish(page);
});

test("a form that was answered elsewhere, or has expired, is read-only", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/chat");
  await chooseAgent(page, "stage");
  const soon = { ...request, expires_at: 1 };
  await say(page, [["result", "message.completed", { message: { role: "assistant", content: "x", metadata: { interaction: soon } } }], ["end"]]);
  await see(form(page).getByText("This question has expired."));
  await gone(form(page).getByRole("button", { name: "Order" }));
  await finish(page);
});
