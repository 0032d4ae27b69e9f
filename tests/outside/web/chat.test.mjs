// The chat: cards, files, approvals, stopping, steering, reload and search.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { chooseAgent, finish, forgive, forgiveFailedRequests, gone, launch, open, say, see, signedIn } from "./browser.mjs";
import { eventually, Host } from "./host.mjs";

let browser, host;
before(async () => {
  host = await Host.start();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await host?.end();
});

const answers = (page) => page.locator("[data-kind=answer]");
const tools = (page, state) => page.locator(`[data-kind=tool][data-state=${state}]`);
const send = (page) => page.getByRole("button", { name: "Send" });
const conversationOf = (page) => decodeURIComponent(new URL(page.url()).pathname.split("/").pop());
const remove = { tool_name: "project_cli", tool_call_id: "c1", parameters: { module: "calendar", method: "delete", input: { event_id: "none" } } };

test("an answer is markdown with code, and its run is one click away", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/chat");
  await chooseAgent(page, "stage");
  const text = "# Title\n\n**bold** and a table\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint('hi')\n```\n";
  await say(page, [["say", "# Ti"], ["message", text], ["end"]]);
  const answer = answers(page);
  await see(answer.getByRole("heading", { name: "Title" }));
  await see(answer.locator("strong", { hasText: "bold" }));
  await see(answer.getByRole("table"));
  await see(answer.locator("pre", { hasText: "print('hi')" }));
  await page.getByRole("link", { name: "Open the run" }).click();
  await page.waitForURL("**/runs/run_*");
  await finish(page);
});

test("a text is readable while the Markdown module is missing, and rendered once it is loaded", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/chat");
  await chooseAgent(page, "stage");
  await say(page, [["message", "**bold** words"], ["end"]]);
  await see(answers(page).locator("strong", { hasText: "bold" }));
  const held = [];
  await page.route("**/assets/markdown-*.js", (route) => held.push(route));
  await page.reload();
  await see(answers(page).getByText("**bold** words"));
  assert.ok(held.length > 0, "nothing was held back");
  for (const route of held) await route.continue();
  await see(answers(page).locator("strong", { hasText: "bold" }));
  await finish(page);
});

for (const [locale, prompt, title, placeholder, done] of [
  ["en-US", "schedule lunch tomorrow at 12:00", "lunch", "Your message", "Event created"],
  ["zh-CN", "帮我建一个明天下午三点的会议", "会议", "你的消息", "日程已创建"],
]) {
  test(`a tool is shown as it is called, with its card (${locale})`, async () => {
    const page = await signedIn(browser, host, { locale });
    await open(page, "/chat");
    const field = page.locator("main textarea");
    assert.equal(await field.getAttribute("aria-label"), placeholder);
    await field.fill(prompt);
    await field.press("Enter");
    await see(tools(page, "done"));
    const card = tools(page, "done").getByRole("group").or(tools(page, "done").locator("section[aria-label]"));
    await see(card.getByText(title, { exact: true }));
    await see(card.getByText(done));
    await see(answers(page));
    // Details: arguments and result.
    await tools(page, "done").getByRole("button", { expanded: false }).first().click();
    await see(tools(page, "done").getByText("start_at"));
    // The same after a reload.
    await page.reload();
    await see(card.getByText(title, { exact: true }));
    await see(card.getByText(done));
    await finish(page);
  });
}

test("a card follows the chosen language", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/chat");
  const field = page.locator("main textarea");
  await field.fill("schedule lunch tomorrow at 12:00");
  await field.press("Enter");
  await see(tools(page, "done").getByText("Event created"));
  await see(answers(page));
  await page.reload();
  await see(tools(page, "done").getByText("Event created"));
  await page.getByRole("button", { name: "Language" }).click();
  await page.getByText("中文", { exact: true }).click();
  await see(tools(page, "done").getByText("日程已创建"));
  await finish(page);
});

for (const [button, status] of [["Allow", "allowed"], ["Deny", "denied"]]) {
  test(`an approval is answered in the conversation: ${button}`, async () => {
    const page = await signedIn(browser, host);
    await open(page, "/chat");
    await chooseAgent(page, "stage");
    await say(page, [["message", "before"], ["tool", remove], ["message", "behind"], ["end"]]);
    const question = page.getByRole("region", { name: "stage asks for approval" });
    await see(question);
    await see(question.getByText("delete"));
    assert.equal(await answers(page).count(), 1, "the run waits");
    await question.getByRole("button", { name: button, exact: true }).click();
    await see(answers(page).filter({ hasText: "behind" }));
    await see(tools(page, "failed"));
    await see(page.locator(`[data-kind=approval] [data-status=${status}]`));
    // There was nothing to delete; a denied call does not report that.
    const errors = await tools(page, "failed").getByText("NOT_FOUND").count();
    assert.equal(errors > 0, button === "Allow");
    const { items } = await host.get(`/v1/approvals?limit=1`);
    assert.equal(items[0].status, status);
    await finish(page);
  });
}

test("an attached file is downloaded unchanged", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/chat");
  await chooseAgent(page, "stage");
  const bytes = Buffer.concat([Buffer.from([0, 255, 128]), randomBytes(70_000)]);
  const name = "报告 \"final\" <1>.bin";
  await page.locator("input[type=file]").setInputFiles({ name, mimeType: "application/octet-stream", buffer: bytes });
  await see(page.locator("[data-state=kept]"));
  await say(page, [["message", "thanks"], ["end"]]);
  await see(answers(page).filter({ hasText: "thanks" }));
  for (const again of [false, true]) {
    if (again) await page.reload();
    const link = page.locator("[data-kind=user] a[download]");
    await see(link);
    const [download] = await Promise.all([page.waitForEvent("download"), link.click()]);
    const got = await readFile(await download.path());
    assert.equal(createHash("sha256").update(got).digest("hex"), createHash("sha256").update(bytes).digest("hex"));
  }
  await finish(page);
});

test("images are shown, sent and created by a run", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/chat");
  await chooseAgent(page, "stage");
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEUlEQVR4nGNoaGAgBuFQAKQBAH4gD+XeSnVKAAAAAElFTkSuQmCC";
  await page.locator("input[type=file]").setInputFiles({ name: "in.png", mimeType: "image/png", buffer: Buffer.from(png, "base64") });
  await see(page.locator("[data-state=kept] img"));
  const made = ["result", "artifact.created", { name: "out.png", mime_type: "image/png", content_base64: png }];
  await say(page, [made, ["message", "look"], ["end"]]);
  for (const again of [false, true]) {
    if (again) await page.reload();
    await see(page.locator("[data-kind=user] figure img"));
    await see(page.getByRole("img", { name: "Preview of out.png" }));
    const width = await page.getByRole("img", { name: "Preview of out.png" }).evaluate((image) => image.naturalWidth);
    assert.equal(width, 10);
  }
  await finish(page);
});

test("a run is stopped after confirmation", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/chat");
  await chooseAgent(page, "stage");
  await say(page, [["say", "one moment"], ["gate", "never"]]);
  await see(answers(page).filter({ hasText: "one moment" }));
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("button", { name: "Stop run" }).click();
  await see(page.getByText("The run was stopped."));
  const { items } = await host.get(`/v1/runs?conversation_id=${conversationOf(page)}`);
  assert.equal(items[0].status, "cancelled");
  await gone(page.getByRole("button", { name: "Stop", exact: true }));
  await finish(page);
});

test("a message sent during a steering run is passed to it", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/chat");
  await chooseAgent(page, "listener");
  await say(page, [["say", "working"], ["gate", "steered"], ["pull"], ["end"]]);
  await see(answers(page).filter({ hasText: "working" }));
  await see(page.getByText("New messages are passed to the current run"));
  await say(page, "please hurry");
  await see(page.getByText("Passed to the current run", { exact: true }));
  host.open("steered");
  await see(answers(page).filter({ hasText: "please hurry" }));
  const { items } = await host.get(`/v1/runs?conversation_id=${conversationOf(page)}`);
  assert.equal(items.length, 1, "one run took both");
  await finish(page);
});

test("a reload during a run continues it", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/chat");
  await chooseAgent(page, "stage");
  await say(page, [["say", "first half, "], ["gate", "reload"], ["say", "second half"], ["message", "first half, second half"], ["end"]]);
  await see(answers(page).filter({ hasText: "first half" }));
  await page.reload();
  await see(answers(page).filter({ hasText: "first half" }));
  await see(page.getByRole("button", { name: "Stop", exact: true }));
  host.open("reload");
  await see(answers(page).filter({ hasText: /^first half, second half/ }));
  await gone(page.getByRole("button", { name: "Stop", exact: true }));
  assert.equal(await answers(page).count(), 1);
  assert.equal(await page.locator("[data-kind=user]").count(), 1);
  await finish(page);
});

test("a run that fails is explained with its code", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/chat");
  await chooseAgent(page, "stage");
  await say(page, [["fail", "runner.broken", "no paper left"]]);
  const failure = page.locator("[data-kind=error]");
  await see(failure.getByText("no paper left"));
  await see(failure.getByText("runner.broken"));
  await finish(page);
});

test("several conversations are listed and found by search", async () => {
  const page = await signedIn(browser, host);
  await host.say("echo", "the quick heron", "birds");
  await host.say("echo", "数据库连接信息", "databases");
  await open(page, "/chat/birds");
  await see(answers(page).filter({ hasText: "the quick heron" }));
  const list = page.getByRole("navigation", { name: "Conversations" });
  await list.getByRole("link", { name: /数据库连接信息/ }).click();
  await page.waitForURL("**/chat/databases");
  await see(answers(page).filter({ hasText: "数据库连接信息" }));
  const search = page.getByRole("searchbox", { name: "Search conversations" });
  const hits = page.getByRole("navigation", { name: "Search conversations" });
  for (const [words, conversation] of [["heron", "birds"], ["连接", "databases"]]) {
    // Messages are indexed with a delay.
    await eventually(`${words} is found`, async () => (await host.get(`/v1/conversations/${conversation}/search?q=${encodeURIComponent(words)}`)).items.length > 0);
    await search.fill("");
    await search.fill(words);
    await hits.getByRole("link").filter({ has: page.locator("mark", { hasText: words }) }).first().click();
    await page.waitForURL(`**/chat/${conversation}?item=*`);
  }
  await search.fill("nothingofthekind");
  await see(page.getByText("No results for"));
  await finish(page);
});

test("the link to a run can be shared", async () => {
  const page = await signedIn(browser, host, { permissions: ["clipboard-read", "clipboard-write"] });
  await host.say("echo", "share me", "shared");
  await open(page, "/chat/shared");
  await page.getByRole("button", { name: "Copy a link to the run" }).click();
  await see(page.getByText("Link to the run copied"));
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(link, new RegExp(`^${host.url}/runs/run_`));
  const other = await signedIn(browser, host);
  await other.goto(link);
  await see(other.getByText("share me"));
  await finish(other);
  await finish(page);
});

test("a message to a host that is down is not lost", async () => {
  const page = await signedIn(browser, host);
  forgiveFailedRequests(page);
  forgive(page, /Agent execution failed/);
  await open(page, "/chat");
  await chooseAgent(page, "echo");
  await page.route("**/v1/agui/**", (route) => route.abort("connectionrefused"));
  await say(page, "do not lose me");
  await see(page.getByText("Not sent"));
  await page.unroute("**/v1/agui/**");
  await page.getByRole("button", { name: "Edit message" }).click();
  assert.equal(await page.getByRole("textbox", { name: "Your message" }).inputValue(), "do not lose me");
  await send(page).click();
  await see(answers(page).filter({ hasText: "do not lose me" }));
  await finish(page);
});

test("two windows show the same conversation", async () => {
  const page = await signedIn(browser, host);
  forgive(page, /another window/);
  await open(page, "/chat");
  await chooseAgent(page, "stage");
  await say(page, [["say", "first half, "], ["gate", "windows"], ["message", "first half, second half"], ["end"]]);
  await see(answers(page).filter({ hasText: "first half" }));
  const other = await page.context().newPage();
  await other.goto(page.url());
  await see(answers(other).filter({ hasText: "first half" }));
  host.open("windows");
  for (const window of [page, other]) await see(answers(window).filter({ hasText: "second half" }));
  await chooseAgent(page, "echo");
  await say(page, "over here");
  await see(answers(other).filter({ hasText: "over here" }));
  await finish(page);
});

test("a host that dies during a run shows a notice, and everything is restored afterwards", async () => {
  const page = await signedIn(browser, host);
  forgiveFailedRequests(page);
  forgive(page, /Agent execution failed|ERR_|network error/i);
  await open(page, "/chat");
  await chooseAgent(page, "stage");
  await say(page, [["message", "half a word"], ["gate", "never"]]);
  await see(answers(page).filter({ hasText: "half a word" }));
  await host.kill();
  await see(page.getByText(/The host does not respond|Connection lost/).locator("visible=true"));
  await host.comeBack();
  // Sessions end with the host.
  const field = page.getByLabel("Token", { exact: true });
  await see(field);
  await field.fill(host.token);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/chat/*");
  await see(page.locator("[data-kind=error]").filter({ hasText: "host.interrupted" }));
  await see(answers(page).filter({ hasText: "half a word" }));
  await finish(page);
});
