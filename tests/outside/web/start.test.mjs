// From the printed URL to the first answer, and sign-in.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { finish, forgive, forgiveFailedRequests, gone, launch, newPage, open, see, signedIn } from "./browser.mjs";
import { Host } from "./host.mjs";

let browser, host;
before(async () => {
  host = await Host.start({ configured: false });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await host?.end();
});

test("the printed URL signs in, an empty host shows the first steps, and the demo answers", async () => {
  const page = await newPage(browser, host);
  await page.goto(`${host.url}/#code=${host.code}`);
  await see(page.getByRole("heading", { name: "Welcome to Greenroom" }));
  assert.equal(page.url(), `${host.url}/`, "the code has left the address bar");
  assert.equal(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]).includes("code=")), false);
  assert.equal(await page.evaluate(() => document.cookie), "", "no script reads the session");
  assert.equal(await page.locator("main ol > li").count(), 3, "three steps");

  await page.getByRole("button", { name: "Start the demo conversation" }).click();
  await page.waitForURL("**/chat/*");
  await see(page.getByText("Done:").or(page.locator("[data-kind=answer]")));
  await see(page.locator("[data-kind=tool][data-state=done]"));
  await see(page.getByLabel(/^Card of/));
  await finish(page);
});

test("a code works once", async () => {
  const page = await newPage(browser, host);
  forgiveFailedRequests(page);
  await page.goto(`${host.url}/#code=${host.code}`);
  await see(page.getByRole("alert").filter({ hasText: "already used" }));
  assert.ok(!page.url().includes("code="));
  await finish(page);
});

test("a wrong token shows an error, the right one leads to the requested page", async () => {
  const page = await newPage(browser, host);
  forgiveFailedRequests(page);
  await page.goto(`${host.url}/runs?status=completed`);
  const field = page.getByLabel("Token", { exact: true });
  await see(field);
  assert.equal(await field.getAttribute("type"), "password");
  await field.fill("gr_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await see(page.getByRole("alert").filter({ hasText: "Unknown token" }));
  await field.fill(host.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL("**/runs?status=completed");
  await see(page.getByRole("heading", { name: "Runs", level: 1 }));
  await finish(page);
});

test("signing out ends the session in all windows of the browser", async () => {
  const page = await signedIn(browser, host);
  forgiveFailedRequests(page);
  forgive(page, /another window/);
  await open(page, "/runs");
  const other = await page.context().newPage();
  await other.goto(`${host.url}/agents`);
  await see(other.getByRole("heading", { name: "Agents", level: 1 }));
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL("**/signin*");
  await other.reload();
  await see(other.getByLabel("Token", { exact: true }));
  await finish(page);
});

test("requests from pages of other sites are refused, even with the session", async () => {
  const page = await signedIn(browser, host);
  const refused = await page.request.post(`${host.url}/v1/events`, {
    headers: { "X-Greenroom": "1", Origin: "http://127.0.0.1:1" },
    data: { event_type: "message.received", conversation_id: "c1", input: { text: "hi" } },
  });
  assert.equal(refused.status(), 403);
  const without = await page.request.post(`${host.url}/v1/events`, {
    headers: { Origin: host.url },
    data: { event_type: "message.received", conversation_id: "c1", input: { text: "hi" } },
  });
  assert.equal(without.status(), 403);
  await page.context().close();
});

test("the language is the browser's until it is chosen", async () => {
  const page = await newPage(browser, host, { locale: "zh-CN" });
  await page.goto(`${host.url}/signin`);
  await see(page.getByRole("heading", { name: "登录" }));
  assert.equal(await page.locator("html").getAttribute("lang"), "zh-CN");
  await page.getByRole("button", { name: "English" }).click();
  await see(page.getByRole("heading", { name: "Sign in" }));
  await page.reload();
  await see(page.getByRole("heading", { name: "Sign in" }));
  await finish(page);
});

test("a notice is shown while the host is down, and the page recovers", async () => {
  const page = await signedIn(browser, host);
  forgiveFailedRequests(page);
  forgive(page, /ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED/);
  await open(page, "/runs");
  await host.kill();
  await see(page.getByText("The host does not respond"));
  await host.comeBack();
  // Sessions end with the host: signing in again leads back to the same page.
  const field = page.getByLabel("Token", { exact: true });
  await see(field);
  await field.fill(host.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL("**/runs");
  await see(page.getByRole("heading", { name: "Runs", level: 1 }));
  await gone(page.getByText("The host does not respond"));
  await finish(page);
});

test("the console is empty before sign-in", async () => {
  const page = await newPage(browser, host);
  const failed = [];
  const complaints = [];
  page.on("response", (response) => response.status() >= 400 && failed.push(`${response.status()} ${response.url()}`));
  page.on("requestfailed", (request) => failed.push(request.url()));
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  for (const path of ["/", "/signin", "/chat/c1", "/runs?status=failed"]) {
    await page.goto(host.url + path);
    await see(page.getByLabel("Token", { exact: true }));
  }
  assert.deepEqual({ failed, complaints }, { failed: [], complaints: [] });
  await page.getByLabel("Token", { exact: true }).fill(host.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL("**/runs?status=failed");
  await finish(page);
});

test("an unknown URL has a page in both languages", async () => {
  for (const [locale, words, back] of [["en-US", "Page not found", "Go to the overview"], ["zh-CN", "页面不存在", "回到总览"]]) {
    const page = await signedIn(browser, host, { locale });
    forgive(page, /status of 404/);
    const answer = await page.goto(`${host.url}/no/such/page`);
    assert.equal(answer.status(), 404);
    await see(page.getByRole("heading", { name: words, level: 1 }));
    await page.getByRole("link", { name: back }).click();
    await page.waitForURL(`${host.url}/`);
    await page.goto(`${host.url}/runs/no-such-run`);
    assert.equal(await page.getByRole("heading", { name: words, level: 1 }).count(), 0, "a page of the interface");
    await finish(page);
  }
});
