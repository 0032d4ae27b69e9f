// Who may do less is shown less, and never a page full of refusals.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { finish, forgive, launch, open, say, see, signedIn } from "./browser.mjs";
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

test("a reader reads everything and is not offered what it may not do", async () => {
  const page = await signedIn(browser, host, {}, host.tokens.watcher);
  await open(page, "/chat/c1");
  await see(page.locator("[data-kind=answer]").filter({ hasText: "said by somebody" }));
  await see(page.getByText("You may read here, but not send"));
  assert.equal(await page.getByRole("textbox", { name: "Your message" }).isEnabled(), false);
  for (const path of ["/", "/runs", "/agents", "/approvals", "/events", "/conversations", "/artifacts", "/state", "/audit"]) {
    await open(page, path);
    assert.equal(await page.getByRole("alert").count(), 0, path);
  }
  await finish(page);
});

test("a sender chats with its agents and sees no page that refuses it", async () => {
  const page = await signedIn(browser, host, {}, host.tokens.website);
  forgive(page, /status of 403/);
  await page.goto(`${host.url}/`);
  await page.waitForURL("**/chat");
  const field = page.getByRole("textbox", { name: "Your message" });
  await see(field);
  assert.deepEqual(await page.getByRole("combobox", { name: "Agent" }).locator("option").allTextContents(), ["echo"]);
  await say(page, "hello from the website");
  await see(page.locator("[data-kind=answer]").filter({ hasText: "hello from the website" }));
  assert.equal(await page.getByRole("alert").count(), 0);
  await finish(page);
});
