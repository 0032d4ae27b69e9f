// Agents, the dry run, settings, the approvals inbox, and the lists of facts with their filters.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { finish, gone, launch, open, say, see, signedIn } from "./browser.mjs";
import { eventually, Host } from "./host.mjs";

let browser, host;
before(async () => {
  host = await Host.start();
  browser = await launch();
  await host.say("assistant", "remember that I like tea", "facts");
  await host.say("stage", [
    ["call", "events.page", { limit: 1 }],
    ["result", "state.updated", { scope: "conversation", key: "mood", value: { is: "calm" } }],
    ["result", "artifact.created", { name: "notes.txt", mime_type: "text/plain", content_base64: Buffer.from("dear diary").toString("base64") }],
    ["end"],
  ], "notes");
});
after(async () => {
  await browser?.close();
  await host?.end();
});

const main = (page) => page.locator("main");
const remove = { tool_name: "project_cli", tool_call_id: "c1", parameters: { module: "calendar", method: "delete", input: { event_id: "none" } } };

test("an approval names what would be deleted, with the same warning and order on the page and in the chat", async () => {
  const input = { title: "dinner", start_at: "2026-04-21T19:00:00Z", end_at: "2026-04-21T20:00:00Z" };
  const create = { tool_name: "project_cli", tool_call_id: "made", parameters: { module: "calendar", method: "create", input } };
  await host.say("stage", [["tool", create], ["end"]], "dinner");
  const history = JSON.stringify(await host.get("/v1/conversations/dinner/history"));
  const [event_id] = /rec_[0-9A-Za-z_-]+/.exec(history);
  const parameters = { module: "calendar", method: "delete", input: { event_id } };
  const { run_id } = await host.send("stage", [["tool", { ...remove, parameters }], ["end"]], "dinner");
  const page = await signedIn(browser, host);
  const places = [
    ["/approvals", page.getByRole("article").filter({ hasText: "dinner" })],
    ["/chat/dinner", page.getByRole("region", { name: "stage asks for approval" })],
  ];
  for (const [address, card] of places) {
    await open(page, address);
    await see(card.locator("[data-kind=subject]").getByText(/^“dinner”, Tue/));
    await see(card.getByText("This cannot be undone."));
    assert.deepEqual(await card.getByRole("button", { name: /^(Allow|Deny)$/ }).allTextContents(), ["Allow", "Deny"], address);
  }
  await page.getByRole("button", { name: "Deny", exact: true }).click();
  await host.runEnded(run_id);
  await finish(page);
});

test("agents are listed with their binding and status", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/agents");
  for (const name of ["assistant", "echo", "stage", "listener", "narrow"]) {
    await see(main(page).getByRole("link", { name, exact: true }));
  }
  const narrow = main(page).getByRole("listitem").filter({ has: page.getByRole("link", { name: "narrow", exact: true }) });
  await see(narrow.getByText("Only in the conversation vip."));
  await main(page).getByRole("link", { name: "stage", exact: true }).click();
  await page.waitForURL("**/agents/stage");
  await see(main(page).getByText("It handles only events that name it."));
  await see(main(page).getByText("May read this conversation's history."));
  await see(main(page).getByText("Needs approval to use a tool that deletes or overwrites."));
  await see(main(page).getByText("May not use any tool.").or(main(page).getByText(/May use these methods/)));
  await finish(page);
});

test("a dry run shows which agent would handle an event, why, and with which grant; nothing is stored", async () => {
  const page = await signedIn(browser, host);
  const before = (await host.get("/v1/events?limit=200")).items.length;
  await open(page, "/agents");
  await page.getByLabel("Conversation").fill("vip");
  await page.getByRole("button", { name: "Check" }).click();
  await see(main(page).getByText("narrow would handle it."));
  await page.getByLabel("Conversation").fill("");
  await page.getByRole("button", { name: "Check" }).click();
  await see(main(page).getByText("assistant would handle it."));
  await see(main(page).getByText("is for another conversation"));
  await see(main(page).getByText("handles events only when it is named").first());
  await main(page).getByText("With these permissions").click();
  await see(main(page).getByText("May read this conversation's history."));
  await page.getByLabel("Event type").fill("unknown.type");
  await page.getByRole("button", { name: "Check" }).click();
  await see(main(page).getByText(/No agent matches this event/));
  assert.equal((await host.get("/v1/events?limit=200")).items.length, before);
  await finish(page);
});

test("settings are a form built from the runner's schema, validated, and shown as configuration", async () => {
  const page = await signedIn(browser, host);
  const file = () => readFileSync(join(host.folder, "greenroom.toml"), "utf8");
  const before = file();
  await open(page, "/agents/stage?tab=settings");
  const greeting = page.getByLabel("Greeting");
  await see(greeting);
  assert.equal(await greeting.inputValue(), "hello");
  await page.getByLabel("Rounds").fill("many");
  await see(page.getByText("This is not a number.").or(page.getByText("This is not a whole number.")));
  const show = page.getByRole("button", { name: "Show as configuration" });
  assert.equal(await show.isDisabled(), true);
  await page.getByLabel("Rounds").fill("7");
  await page.getByLabel("Mood").selectOption("wild");
  await page.getByRole("switch", { name: "Loud" }).click();
  await page.getByLabel("Tags").fill("one\ntwo");
  await greeting.fill('good "day"');
  await show.click();
  const toml = page.locator("pre", { hasText: "[agents.stage.config]" });
  for (const line of ["rounds = 7", 'mood = "wild"', "loud = true"]) await see(toml.getByText(line).or(toml.filter({ hasText: line })));
  const text = await toml.innerText();
  assert.match(text, /good \\"day\\"|'good "day"'/);
  assert.match(text, /"one",\s*"two"/);
  assert.equal(file(), before, "the file is the operator's");
  await finish(page);
});

test("runners show their status, sandbox and requested permissions", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/runners");
  const stage = main(page).getByRole("listitem").filter({ has: page.getByRole("heading", { name: "stage" }) }).first();
  await see(stage.getByText("Ready"));
  await see(stage.getByText("test/stage 1.0.0"));
  await stage.getByRole("button", { name: "Requested permissions" }).click();
  await see(stage.getByText("Receives messages during a run"));
  await finish(page);
});

test("a call is allowed with another input, and the page says which was requested", async () => {
  const page = await signedIn(browser, host);
  const { run_id } = await host.send("stage", [["tool", remove], ["message", "over"], ["end"]], "inbox-edited");
  await open(page, "/approvals");
  const card = page.getByRole("article").filter({ hasText: "delete" });
  await card.getByRole("button", { name: "Change input" }).click();
  const input = card.getByLabel("Input of the call, as JSON");
  await input.fill("{");
  await card.getByRole("button", { name: "Allow", exact: true }).click();
  await see(card.getByText("This is not a JSON object."));
  await input.fill('{"event_id": "chosen by the user"}');
  await card.getByRole("button", { name: "Allow with this input" }).click();
  await gone(card);
  assert.equal((await host.runEnded(run_id)).status, "completed");
  const { items } = await host.get(`/v1/approvals?run_id=${run_id}`);
  assert.deepEqual(items[0].payload.input, { event_id: "chosen by the user" });
  await page.getByRole("tab", { name: "Answered" }).click();
  await main(page).getByText(/calendar\.delete/).first().click();
  await see(main(page).getByText("Requested input"));
  await finish(page);
});

for (const [button, status, outcome] of [["Allow", "allowed", "NOT_FOUND"], ["Deny", "denied", "DENIED"]]) {
  test(`an approval is answered in the inbox: ${button}`, async () => {
    const page = await signedIn(browser, host);
    const { run_id } = await host.send("stage", [["tool", remove], ["message", "over"], ["end"]], `inbox-${status}`);
    await open(page, "/approvals");
    const card = page.getByRole("article").filter({ hasText: "delete" });
    await see(card);
    await see(card.getByText("cannot be undone"));
    await see(card.getByText(/Expires in/));
    await card.getByRole("button", { name: button, exact: true }).click();
    await gone(card);
    assert.equal((await host.runEnded(run_id)).status, "completed");
    const { items } = await host.get(`/v1/approvals?run_id=${run_id}`);
    assert.equal(items[0].status, status);
    const history = await host.get(`/v1/conversations/inbox-${status}/history`);
    assert.ok(JSON.stringify(history).includes(outcome), JSON.stringify(history));
    await page.getByRole("tab", { name: "Answered" }).click();
    await see(main(page).getByText(/calendar\.delete/).first());
    await finish(page);
  });
}

test("audit records are filtered, and a refusal says why", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/audit");
  const records = main(page).getByRole("list", { name: "Audit" }).getByRole("listitem");
  await see(records);
  const all = await records.count();
  await page.getByLabel("Outcome").selectOption("denied");
  const refused = records.filter({ hasText: /event log|events/ });
  await eventually("only refusals are left", async () => {
    const count = await records.count();
    return count > 0 && count < all;
  });
  assert.match(page.url(), /outcome=denied/);
  await refused.getByRole("button").first().click();
  await see(refused.getByText("unauthorized").first());
  await page.getByLabel("Outcome").selectOption("");
  await page.getByLabel("Agent or runner").fill("assistant");
  await eventually("only those of the assistant are left", async () => {
    const count = await records.count();
    return count > 0 && count < all;
  });
  await page.getByRole("button", { name: "Clear filters" }).click();
  await eventually("all are back", async () => (await records.count()) === all);
  await finish(page);
});

test("events are filtered by kind and lead to their details", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/events");
  await page.getByLabel("Kind").selectOption({ label: "messages" });
  const row = main(page).locator("tbody tr").filter({ hasText: "remember that I like tea" });
  await see(row);
  await gone(main(page).locator("tbody tr").filter({ hasText: "tool.call" }));
  await row.getByRole("link").first().click();
  await page.waitForURL("**/events/*");
  await see(main(page).getByText("remember that I like tea").first());
  await finish(page);
});

test("conversations are read and searched", async () => {
  const page = await signedIn(browser, host);
  await eventually("it is indexed", async () => (await host.get("/v1/search?q=tea")).items.length > 0);
  await open(page, "/conversations");
  await page.getByRole("searchbox", { name: "Search all conversations" }).fill("tea");
  await see(main(page).locator("mark", { hasText: "tea" }).first());
  await open(page, "/conversations?id=facts");
  await see(main(page).getByText("remember that I like tea").first());
  await finish(page);
});

test("artifacts are uploaded, filtered, previewed and downloaded", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/artifacts");
  await page.locator("input[type=file]").first().setInputFiles({ name: "up.json", mimeType: "application/json", buffer: Buffer.from('{"tea": true}') });
  const dialog = page.getByRole("dialog");
  await see(dialog.getByText("tea"));
  const [download] = await Promise.all([page.waitForEvent("download"), dialog.getByRole("button", { name: "Download" }).or(dialog.getByRole("link", { name: "Download" })).first().click()]);
  assert.equal(download.suggestedFilename(), "up.json");
  await page.keyboard.press("Escape");
  await gone(dialog);
  await page.getByLabel("Kind").selectOption({ label: "text" });
  await see(main(page).getByRole("link", { name: "notes.txt" }));
  await gone(main(page).getByRole("link", { name: "up.json" }));
  await finish(page);
});

test("state is shown with its owner", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/state?scope=conversation");
  const item = main(page).getByRole("listitem").filter({ hasText: "mood" });
  await see(item.getByText("notes").first());
  await page.getByLabel("Key prefix").fill("zzz");
  await see(main(page).getByText("Nothing matches these filters"));
  await finish(page);
});

test("the overview shows runs and the status of store, models and runners", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/");
  await see(page.getByRole("heading", { name: "Overview", level: 1 }));
  for (const words of ["Runs", "Latency", "Errors", "Tokens", "Memory", "Store", "Models", "Runners"]) {
    await see(main(page).getByText(words, { exact: true }).first());
  }
  await see(main(page).locator("canvas, svg").first());
  await page.getByRole("button", { name: "24 hours" }).or(page.getByRole("radio", { name: "24 hours" })).or(page.getByRole("tab", { name: "24 hours" })).first().click();
  await see(main(page).getByText("Store", { exact: true }).first());
  await finish(page);
});

test("a conversation opens in the chat", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/conversations?id=facts");
  await page.getByRole("link", { name: "Open in chat" }).click();
  await page.waitForURL("**/chat/facts");
  await say(page, "what do I like?");
  await see(page.locator("[data-kind=answer]").filter({ hasText: "tea" }));
  await finish(page);
});
