// Language, themes, phones and accessibility.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { finish, forgiveFailedRequests, launch, newPage, open, PAGES, PHONE, see, seriousProblems, sidewaysScroll, signedIn } from "./browser.mjs";
import { eventually, Host } from "./host.mjs";

let browser, host, paths;
before(async () => {
  host = await Host.start();
  browser = await launch();
  const run = await host.say("assistant", "schedule lunch tomorrow at 12:00", "looks");
  const failed = await host.say("stage", [["call", "tools.call", { tool_name: "x.y", tool_call_id: "c", parameters: {} }], ["fail", "runner.broken", "no paper left"]], "looks");
  await host.say("stage", [["message", `# Words\n\n${"long ".repeat(80)}\n\n\`\`\`sh\n${"echo a very long line ".repeat(20)}\n\`\`\`\n\n|${"column|".repeat(12)}\n|${"-|".repeat(12)}\n|${"cell|".repeat(12)}\n`], ["end"]], "looks");
  const remove = { tool_name: "project_cli", tool_call_id: "c1", parameters: { module: "calendar", method: "delete", input: { event_id: "none" } } };
  await host.send("stage", [["tool", remove], ["end"]], "waiting");
  const { artifact_id } = await host.ask("POST", "/v1/artifacts?name=a-file-with-quite-a-long-name-that-goes-on-and-on-and-on.txt");
  const { items } = await host.get("/v1/events?limit=1");
  paths = [
    ...PAGES, "/chat/looks", "/chat/waiting", `/runs/${run}`, `/runs/${failed}`, `/runs/${run}?tab=raw`, `/runs/${run}?tab=rights`,
    `/runs/compare?a=${run}&b=${failed}`, "/agents/stage?tab=settings", "/conversations?id=looks", "/conversations?q=lunch", `/events/${items[0].event_id}`, `/artifacts?id=${artifact_id}`,
    "/runs?status=failed", "/runs?agent=nobody", "/runs/no/such/page",
  ];
});
after(async () => {
  await browser?.close();
  await host?.end();
});

/** Brightness of the page's background, from 0 to 255. */
const brightness = (page) => page.evaluate(() => {
  const colours = [document.body, document.documentElement].map((element) => getComputedStyle(element).backgroundColor);
  const [red, green, blue] = colours.find((colour) => colour !== "rgba(0, 0, 0, 0)").match(/[\d.]+/g).map(Number);
  return (red + green + blue) / 3;
});
const becomes = (page, wanted) => eventually(`the page becomes ${wanted}`, async () => (wanted === "dark" ? (await brightness(page)) < 80 : (await brightness(page)) > 180));

const phone = { viewport: PHONE, hasTouch: true, isMobile: true };
for (const [language, locale] of [["English", "en-US"], ["Chinese", "zh-CN"]]) {
  for (const [size, options] of [["a desk", {}], ["a phone", phone]]) {
    test(`axe finds nothing serious on any page, light or dark: in ${language}, on ${size}`, { timeout: 180_000 }, async () => {
      const page = await signedIn(browser, host, { ...options, locale });
      const found = [];
      for (const path of paths) {
        await open(page, path);
        found.push(...(await lightAndDark(page)));
      }
      // The sign-in page, which is shown without a session only.
      forgiveFailedRequests(page);
      await page.context().clearCookies();
      await page.goto(`${host.url}/signin`);
      await see(page.getByRole("heading", { name: /^(Sign in|登录)/ }));
      found.push(...(await lightAndDark(page)));
      assert.deepEqual(found, []);
      await finish(page);
    });
  }
}

/** Pages with something to open, and how to open it. */
const OPENED = [
  ["/chat/looks", async (page) => {
    for (const tool of await page.locator("[data-kind=tool] > button").all()) await tool.click();
  }],
  ["run", (page) => page.getByRole("button", { name: "Expand all" }).click()],
  ["/", (page) => page.getByRole("button", { name: "Language" }).locator("visible=true").click()],
  ["/", (page) => page.locator("details").evaluateAll((all) => all.forEach((one) => one.toggleAttribute("open", true)))],
  ["/agents", async (page) => {
    await page.getByRole("button", { name: "Check" }).click();
    await see(page.getByText("Why this one"));
  }],
  ["/chat/waiting", async (page) => {
    await page.getByRole("button", { name: "Stop" }).click();
    await see(page.getByRole("dialog").or(page.getByRole("alertdialog")));
  }],
];

test("axe finds nothing serious in details, menus and dialogs", async () => {
  const page = await signedIn(browser, host);
  const found = [];
  for (const [path, act] of OPENED) {
    await open(page, path === "run" ? paths.find((one) => one.startsWith("/runs/run_")) : path);
    await act(page);
    found.push(...(await lightAndDark(page)));
  }
  assert.deepEqual(found, []);
  await finish(page);
});

test("axe finds nothing serious in drawers on a phone", async () => {
  const page = await signedIn(browser, host, phone);
  const found = [];
  for (const [path, name] of [["/runs", "More"], ["/chat/looks", "Show conversations"]]) {
    await open(page, path);
    await page.getByRole("button", { name, exact: true }).tap();
    found.push(...(await lightAndDark(page)));
  }
  assert.deepEqual(found, []);
  await finish(page);
});

test("axe finds nothing serious on an empty host", { timeout: 120_000 }, async () => {
  const empty = await Host.start({ configured: false });
  try {
    const page = await signedIn(browser, empty);
    const found = [];
    for (const path of PAGES.filter((one) => one !== "/agents/stage")) {
      await open(page, path);
      found.push(...(await lightAndDark(page)));
    }
    assert.deepEqual(found, []);
    await finish(page);
  } finally {
    await empty.end();
  }
});

/** Only colours differ in the dark theme. */
async function lightAndDark(page) {
  await page.emulateMedia({ colorScheme: "light" });
  const light = await seriousProblems(page);
  await page.emulateMedia({ colorScheme: "dark" });
  return [...light, ...(await seriousProblems(page, ["color-contrast"])).map((problem) => `in the dark, ${problem}`)];
}

test("the language is switched for every page and persists", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/runs");
  await page.getByRole("button", { name: "Language" }).click();
  await page.getByRole("menuitemradio", { name: "中文" }).or(page.getByRole("menuitem", { name: "中文" })).or(page.getByRole("menuitemcheckbox", { name: "中文" })).first().click();
  await see(page.getByRole("heading", { name: "运行", level: 1 }));
  assert.equal(await page.locator("html").getAttribute("lang"), "zh-CN");
  for (const path of PAGES) {
    await open(page, path);
    const words = await page.locator("body").innerText();
    // Texts of the interface; names, codes and messages are not translated.
    const english = ["Overview", "Nothing here", "Loading", "Clear filters", "Search", "Retry", "Sign out", "Show more", "Settings", "Refresh"];
    assert.deepEqual(english.filter((word) => words.includes(word)), [], path);
    assert.match(words, /[\u4e00-\u9fff]/, path);
  }
  await page.reload();
  assert.equal(await page.locator("html").getAttribute("lang"), "zh-CN");
  await finish(page);
});

test("a Chinese browser gets the Chinese interface", async () => {
  const page = await signedIn(browser, host, { locale: "zh-CN" });
  await open(page, "/");
  await see(page.getByRole("heading", { name: "总览", level: 1 }));
  await finish(page);
});

test("the theme follows the system until it is chosen", async () => {
  const page = await signedIn(browser, host, { colorScheme: "dark" });
  await open(page, "/runs");
  await becomes(page, "dark");
  await page.emulateMedia({ colorScheme: "light" });
  await becomes(page, "light");
  await page.getByRole("button", { name: "Appearance" }).click();
  await page.getByRole("menuitemradio", { name: "Dark" }).or(page.getByRole("menuitem", { name: "Dark" })).or(page.getByRole("menuitemcheckbox", { name: "Dark" })).first().click();
  await becomes(page, "dark");
  await page.reload();
  assert.ok((await brightness(page)) < 80, "the choice stays");
  await finish(page);
});

test("on a phone nothing scrolls sideways and every page is reachable", async () => {
  const page = await signedIn(browser, host, phone);
  const wide = [];
  for (const path of paths) {
    await open(page, path);
    const by = await sidewaysScroll(page);
    if (by > 0) wide.push(`${path}: ${by} px`);
  }
  assert.deepEqual(wide, []);
  await open(page, "/");
  for (const name of ["Chat", "Runs", "Approvals", "Overview"]) {
    const link = page.getByRole("navigation").getByRole("link", { name }).locator("visible=true").first();
    const box = await link.boundingBox();
    assert.ok(box.height >= 44 && box.width >= 44, `${name} is large enough for a thumb: ${box.width}×${box.height}`);
    await link.tap();
    await see(page.getByRole("heading", { level: 1 }).first().or(page.locator("textarea")));
  }
  await page.getByRole("button", { name: "More" }).tap();
  await page.getByRole("link", { name: "Audit" }).locator("visible=true").tap();
  await page.waitForURL("**/audit");
  await finish(page);
});

test("the chat works on a phone: composer, answer and list of conversations", async () => {
  const page = await signedIn(browser, host, phone);
  await open(page, "/chat");
  const field = page.getByRole("textbox", { name: "Your message" });
  const box = await field.boundingBox();
  assert.ok(box.y + box.height < PHONE.height);
  await field.fill("schedule tea tomorrow at 15:00");
  await page.getByRole("button", { name: "Send" }).tap();
  await see(page.locator("[data-kind=tool][data-state=done]").getByText("tea", { exact: true }));
  assert.equal(await sidewaysScroll(page), 0);
  await page.getByRole("button", { name: "Show conversations" }).tap();
  await page.getByRole("link", { name: /schedule lunch tomorrow/ }).tap();
  await page.waitForURL("**/chat/looks");
  await finish(page);
});

test("the sign-in page works on a phone", async () => {
  const page = await newPage(browser, host, phone);
  forgiveFailedRequests(page);
  await page.goto(host.url);
  await see(page.getByLabel("Token", { exact: true }));
  assert.equal(await sidewaysScroll(page), 0);
  await finish(page);
});
