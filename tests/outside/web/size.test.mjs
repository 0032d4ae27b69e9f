// Weight: first load, long conversations, long runs. Times are reported, not checked.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { finish, forgiveFailedRequests, gone, launch, newPage, open, see, signedIn } from "./browser.mjs";
import { Host } from "./host.mjs";
import { DOWN, FLING, READING, scroll, tasksOf, summary, taskSummary, UP, WHEEL } from "./scrolling.mjs";

const FIRST_LOAD_BYTES = 600 * 1024;
/** Maximum DOM nodes of a virtual list. */
const NODES_MAX = 4_000;
/** Tolerance for rounding of row positions. */
const BACK_PX = 2;

let browser, host;
before(async () => {
  host = await Host.start();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await host?.end();
});

const nodes = (page) => page.evaluate(() => document.querySelectorAll("*").length);

test("the first load is small", async (t) => {
  for (const path of ["/", "/chat", "/runs"]) {
    const page = await newPage(browser, host);
    const session = await page.context().newCDPSession(page);
    await session.send("Network.enable");
    let bytes = 0;
    const files = new Map();
    session.on("Network.responseReceived", ({ requestId, response }) => files.set(requestId, response.url));
    session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
      if (!new URL(files.get(requestId) ?? host.url).pathname.startsWith("/v1/")) bytes += encodedDataLength;
    });
    const signIn = await page.request.post(`${host.url}/v1/session`, { headers: { "X-Greenroom": "1", Origin: host.url }, data: { token: host.token } });
    assert.equal(signIn.status(), 200);
    const begin = performance.now();
    await open(page, path);
    const usable = Math.round(performance.now() - begin);
    await page.waitForLoadState("networkidle").catch(() => undefined);
    t.diagnostic(`${path}: ${Math.round(bytes / 1024)} KB over the wire, usable after ${usable} ms`);
    assert.ok(bytes > 10_000, "something was measured");
    assert.ok(bytes <= FIRST_LOAD_BYTES, `${bytes} bytes`);
    await finish(page);
  }
});

test("files of the interface are cached forever, the page itself is revalidated", async () => {
  const page = await signedIn(browser, host);
  const answers = [];
  page.on("response", (response) => answers.push(response));
  await open(page, "/runs");
  const asset = answers.find((one) => one.url().includes("/assets/"));
  assert.match(asset.headers()["cache-control"], /immutable/);
  assert.equal(asset.headers()["content-encoding"], "gzip");
  const index = answers.find((one) => one.url() === `${host.url}/runs`);
  assert.doesNotMatch(index.headers()["cache-control"] ?? "", /immutable/);
  await finish(page);
});

/** Created once, by the first test that needs it. */
let conversation;
async function longConversation(page) {
  conversation ??= (async () => {
    for (let round = 0; round < 10; round += 1) await host.say("stage", [["lines", 499], ["end"]], "long");
    const { items } = await host.get("/v1/conversations");
    assert.equal(items.find((one) => one.conversation_id === "long").items, 5_000);
  })();
  await conversation;
  const begin = performance.now();
  await open(page, "/chat/long");
  await see(page.locator("[data-kind=answer]").filter({ hasText: "Item 498" }));
  return Math.round(performance.now() - begin);
}

test("a conversation of 5,000 items is scrolled through with a wheel, and no row jumps", { timeout: 120_000 }, async (t) => {
  const page = await signedIn(browser, host);
  await longConversation(page);
  const log = page.getByRole("log");
  const whole = () => log.evaluate((element) => element.scrollHeight);
  const first = await whole();
  // Up while pages are loaded, then down again.
  for (const [way, direction] of [[READING, UP], [WHEEL, UP], [FLING, UP], [WHEEL, DOWN], [FLING, DOWN]]) {
    const seen = await scroll(page, log, way, direction);
    t.diagnostic(`${way.name} ${direction === UP ? "up" : "down"}: ${summary(seen)}`);
    assert.ok(seen.back <= BACK_PX, `rows moved back by ${seen.back} px`);
    assert.ok((await nodes(page)) < NODES_MAX);
  }
  assert.ok((await whole()) > first + WHEEL.distance, "older pages were read");
  await finish(page);
});

test("a conversation of 5,000 items is scrolled to its beginning", { timeout: 120_000 }, async (t) => {
  const page = await signedIn(browser, host);
  const shown = await longConversation(page);
  const log = page.getByRole("log");
  let most = 0;
  const begin = performance.now();
  // As fast as possible, page by page.
  const tasks = await tasksOf(page, async () => {
    for (;;) {
      await log.evaluate((element) => new Promise((resolve) => {
        element.scrollBy(0, -2_400);
        requestAnimationFrame(() => requestAnimationFrame(resolve));
      }));
      most = Math.max(most, await nodes(page));
      const isAtTop = await log.evaluate((element) => element.scrollTop === 0);
      if (isAtTop && (await page.getByText("Start of the conversation").isVisible())) break;
      assert.ok(performance.now() - begin < 90_000, "the beginning is reached");
    }
  });
  await see(page.locator("[data-kind=answer]").filter({ hasText: "Item 0" }));
  const up = Math.round(performance.now() - begin);
  await page.getByRole("button", { name: "Jump to latest" }).click();
  await see(page.locator("[data-kind=answer]").filter({ hasText: "Item 498" }));
  t.diagnostic(`5,000 items: shown after ${shown} ms, at its beginning after ${up} ms, ${taskSummary(tasks)}, at most ${most} nodes`);
  assert.ok(most < NODES_MAX, `${most} nodes`);
  await finish(page);
});

test("an opened conversation keeps its position and loads each page once", async () => {
  const page = await signedIn(browser, host);
  const asked = [];
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url());
    // The list of conversations loads first messages, forward.
    if (pathname.endsWith("/history") && !searchParams.has("direction")) asked.push(searchParams.get("cursor"));
  });
  await longConversation(page);
  const places = () => page.locator("[data-index]").evaluateAll((rows) => rows.map((row) => Math.round(row.getBoundingClientRect().top)));
  const first = await places();
  await page.waitForLoadState("networkidle");
  assert.deepEqual(await places(), first);
  const log = page.getByRole("log");
  await scroll(page, log, WHEEL, UP);
  assert.ok(asked.length > 2, `${asked.length} pages`);
  assert.deepEqual(asked, [...new Set(asked)]);
  const ahead = await log.evaluate((element) => Math.round(element.scrollTop / element.clientHeight));
  assert.ok(ahead < 30, `${ahead} screens were read ahead`);
  await finish(page);
});

test("older entries that fail to load are requested once, and again on retry", async () => {
  const page = await signedIn(browser, host);
  forgiveFailedRequests(page);
  let refused = 0;
  const older = /\/history\?.*cursor=/;
  await page.route(older, (route) => {
    refused += 1;
    return route.abort();
  });
  await longConversation(page);
  const log = page.getByRole("log");
  await scroll(page, log, WHEEL, UP);
  const again = page.getByRole("button", { name: "Older entries could not be loaded. Retry" });
  await see(again);
  assert.equal(refused, 1);
  await page.unroute(older);
  const before = await log.evaluate((element) => element.scrollHeight);
  await again.click();
  await gone(again);
  await page.waitForFunction((height) => document.querySelector("[role=log]").scrollHeight > height, before);
  await finish(page);
});

test("a run of 20,000 results opens and scrolls", { timeout: 120_000 }, async (t) => {
  const run = await host.say("stage", [["flood", 20_000], ["message", "that was all"], ["end"]], "flood");
  const { last_sequence } = await host.get(`/v1/runs/${run}`);
  assert.ok(last_sequence >= 20_000);
  const page = await signedIn(browser, host);
  const begin = performance.now();
  await page.goto(`${host.url}/runs/${run}`);
  await see(page.getByText(/^stage answered in/));
  await see(page.getByRole("button", { name: /^Handled by stage/ }));
  const shown = Math.round(performance.now() - begin);
  await see(page.getByText("that was all").first());
  const whole = Math.round(performance.now() - begin);
  t.diagnostic(`20,000 results: first content after ${shown} ms, all of it after ${whole} ms, ${await nodes(page)} nodes`);
  assert.ok((await nodes(page)) < NODES_MAX);
  for (const [way, direction] of [[WHEEL, DOWN], [FLING, DOWN], [WHEEL, UP], [FLING, UP]]) {
    const seen = await scroll(page, page.locator("main").first(), way, direction);
    t.diagnostic(`${way.name} ${direction === UP ? "up" : "down"}: ${summary(seen)}`);
    assert.ok(seen.back <= BACK_PX, `rows moved back by ${seen.back} px`);
    assert.ok((await nodes(page)) < NODES_MAX);
  }
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight / 2));
  await see(page.getByText(/^Called the tool lookup/).first());
  assert.ok((await nodes(page)) < NODES_MAX);
  await finish(page);
});

test("a slow network shows something at once", async () => {
  const page = await newPage(browser, host);
  forgiveFailedRequests(page);
  await page.route("**/v1/**", async (route) => {
    if (route.request().url().endsWith("/v1/agents")) return;
    await route.continue();
  });
  await page.request.post(`${host.url}/v1/session`, { headers: { "X-Greenroom": "1", Origin: host.url }, data: { token: host.token } });
  await page.goto(`${host.url}/agents`);
  await see(page.getByRole("heading", { name: "Agents", level: 1 }));
  await see(page.getByRole("status", { name: "Loading" }).first());
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await finish(page);
});
