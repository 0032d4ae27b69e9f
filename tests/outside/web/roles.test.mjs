// Roles: pages and controls that a role may not use are not shown.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chooseAgent, finish, forgive, launch, open, say, see, signedIn } from "./browser.mjs";
import { Host } from "./host.mjs";

let browser, host;
before(async () => {
  host = await Host.start();
  browser = await launch();
  await host.say("echo", "said by somebody", "c1");
});
after(async () => {
  await browser?.close();
  await host?.end();
});

test("a reader reads everything and sees no controls it may not use", async () => {
  const page = await signedIn(browser, host, {}, host.tokens.watcher);
  await open(page, "/chat/c1");
  await see(page.locator("[data-kind=answer]").filter({ hasText: "said by somebody" }));
  await see(page.getByText("You can read, but not send"));
  assert.equal(await page.getByRole("textbox", { name: "Your message" }).isEnabled(), false);
  for (const path of ["/", "/runs", "/agents", "/approvals", "/events", "/conversations", "/artifacts", "/state", "/audit"]) {
    await open(page, path);
    assert.equal(await page.getByRole("alert").count(), 0, path);
  }
  await finish(page);
});

test("a sender chats with its agents and sees no refused pages", async () => {
  const page = await signedIn(browser, host, {}, host.tokens.website);
  await page.goto(`${host.url}/`);
  await page.waitForURL("**/chat");
  const field = page.getByRole("textbox", { name: "Your message" });
  await see(field);
  assert.deepEqual(await page.getByRole("combobox", { name: "Agent" }).locator("option").allTextContents(), ["echo", "stage"]);
  await say(page, "hello from the website");
  await see(page.locator("[data-kind=answer]").filter({ hasText: "hello from the website" }));
  assert.equal(await page.getByRole("alert").count(), 0);
  await finish(page);
});

test("a sender's chat survives a reload", async () => {
  const page = await signedIn(browser, host, {}, host.tokens.website);
  await open(page, "/chat");
  await chooseAgent(page, "echo");
  await page.locator("input[type=file]").setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("some notes") });
  await see(page.getByText("notes.txt"));
  await say(page, "remember the pineapple");
  await see(page.locator("[data-kind=answer]").filter({ hasText: "remember the pineapple" }));
  await page.waitForURL("**/chat/*");

  // After a reload: messages, attachments and the list.
  await page.reload();
  await see(page.locator("[data-kind=answer]").filter({ hasText: "remember the pineapple" }));
  const file = page.getByRole("link", { name: /notes\.txt/ });
  await see(file);
  const bytes = await page.request.get(new URL(await file.first().getAttribute("href"), host.url).href);
  assert.equal(await bytes.text(), "some notes");
  const list = page.getByRole("navigation", { name: "Conversations" });
  await see(list.getByText("remember the pineapple"));
  assert.equal(await list.getByText("said by somebody").count(), 0, "a conversation of others is not in the list");

  // Search finds only its own messages.
  const search = page.getByRole("searchbox");
  await search.fill("pineapple");
  await see(page.getByRole("navigation", { name: "Search conversations" }).getByText("pineapple"));
  await search.fill("somebody");
  await see(page.getByText("No results for “somebody”"));
  await search.fill("");

  // A streaming answer continues after a reload.
  await page.goto(`${host.url}/chat`);
  await chooseAgent(page, "stage");
  await say(page, [["say", "the first half, "], ["gate", "second"], ["say", "the second half"], ["end"]]);
  await see(page.locator("[data-kind=answer]").filter({ hasText: "the first half," }));
  await page.waitForURL("**/chat/chat-*");
  await page.reload();
  await see(page.locator("[data-kind=answer]").filter({ hasText: "the first half," }));
  host.open("second");
  await see(page.locator("[data-kind=answer]").filter({ hasText: "the first half, the second half" }));

  assert.equal(await page.getByRole("alert").count(), 0);
  await finish(page);
});

test("another user's conversation is empty to a sender", async () => {
  const page = await signedIn(browser, host, {}, host.tokens.website);
  // The browser logs the 404.
  forgive(page, /status of 404/);
  await open(page, "/chat/c1");
  await see(page.getByRole("textbox", { name: "Your message" }));
  assert.equal(await page.getByText("said by somebody").count(), 0);
  await finish(page);
});
