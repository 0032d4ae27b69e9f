// Browsers for the tests: each page records injected script, foreign requests and console errors; `finish` checks them.
import assert from "node:assert/strict";
import axe from "axe-core";
import { chromium } from "playwright-core";

export const PHONE = { width: 390, height: 844 };
export const DESK = { width: 1280, height: 800 };

/** The URLs of all main pages. */
export const PAGES = [
  "/", "/chat", "/runs", "/approvals", "/agents", "/agents/stage", "/runners",
  "/events", "/deliveries", "/conversations", "/artifacts", "/state", "/audit",
];

/** Browsers log failed requests to the console as well. */
const FAILED_REQUEST = /^Failed to load resource/;

export async function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--font-render-hinting=none"],
  });
}

/** A page without a session, in its own browser profile. */
export async function newPage(browser, host, options = {}) {
  const context = await browser.newContext({ locale: "en-US", timezoneId: "UTC", viewport: DESK, ...options });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  watch(page, host);
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      console.error(`policy violated: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  page.host = host;
  return page;
}

/** A page with a session, by default the admin's. */
export async function signedIn(browser, host, options = {}, token = host.token) {
  const page = await newPage(browser, host, options);
  const answer = await page.request.post(`${host.url}/v1/session`, {
    headers: { "X-Greenroom": "1", Origin: host.url },
    data: { token },
  });
  assert.equal(answer.status(), 200, await answer.text());
  return page;
}

function watch(page, host) {
  page.problems = [];
  page.forgiven = [];
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${host.url}/`) && !/^(blob|data):/.test(url)) page.problems.push(`foreign request: ${url}`);
  });
  page.on("console", (message) => {
    if (message.type() === "error") page.problems.push(`console: ${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => page.problems.push(`script: ${error.name} ${error.message} ${error.stack}`));
  page.on("dialog", (dialog) => {
    page.problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.context().on("page", (other) => page.problems.push(`another window: ${other.url()}`));
}

/** Expected console errors, such as a refused request. */
export function forgive(page, pattern) {
  page.forgiven.push(pattern);
}

export function forgiveFailedRequests(page) {
  forgive(page, new RegExp(`console: ${FAILED_REQUEST.source.slice(1)}`));
}

/** Closes the page and checks its records. */
export async function finish(page) {
  assert.notEqual(await page.title(), "owned", "script of others ran");
  await page.context().close();
  const left = page.problems.filter((problem) => !page.forgiven.some((pattern) => pattern.test(problem)));
  assert.deepEqual(left, []);
}

/** Opens a page and waits until it has content. */
export async function open(page, path) {
  await page.goto(page.host.url + path);
  await settled(page);
}

/** Waits until nothing is loading. */
export async function settled(page) {
  await page.locator("h1").first().waitFor({ state: "attached" });
  await page.locator("main").first().waitFor();
  const loading = page.getByRole("status", { name: /^(Loading|加载中|正在加载|载入中)/ });
  await loading.first().waitFor({ state: "hidden" });
}

export async function see(locator) {
  await locator.first().waitFor({ state: "visible" });
  return locator;
}

export async function gone(locator) {
  await locator.first().waitFor({ state: "hidden" });
}

/** Sends a message in the open chat. */
export async function say(page, text) {
  const field = page.getByRole("textbox", { name: "Your message" });
  await field.fill(typeof text === "string" ? text : JSON.stringify(text));
  await field.press("Enter");
}

export async function chooseAgent(page, name) {
  await page.getByRole("combobox", { name: "Agent" }).selectOption(name);
}

/** Serious and critical problems found by axe, with their elements; by all or some rules. */
export async function seriousProblems(page, rules = null) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe.source);
  const { violations } = await page.evaluate((some) => {
    // Colours must not be measured during transitions.
    const ending = document.getAnimations().filter((one) => Number.isFinite(one.effect.getComputedTiming().endTime));
    ending.forEach((animation) => animation.finish());
    const all = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    return window.axe.run(document, { runOnly: some ?? all, resultTypes: ["violations"] });
  }, rules);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ target, any, all, none }) => {
      const why = [...any, ...all, ...none][0]?.message ?? "";
      return `${new URL(page.url()).pathname}: ${id} at ${target.join(" ")}: ${why}`;
    }));
}

/** Horizontal overflow of a page in pixels. */
export function sidewaysScroll(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}
