// Keyboard only: sign in, chat, open the run; the focus is always visible.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { finish, forgiveFailedRequests, launch, newPage, open, see, signedIn } from "./browser.mjs";
import { Host } from "./host.mjs";

const STEPS_MAX = 80;

let browser, host;
before(async () => {
  host = await Host.start();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await host?.end();
});

/** The focused element: its name, and whether the focus is visible. */
function focused(page) {
  return page.evaluate(() => {
    const element = document.activeElement;
    if (!element || element === document.body) return { name: "", seen: true };
    const looks = (of) => {
      const style = getComputedStyle(of);
      return [style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) > 0 ? "outline" : "", style.boxShadow, style.borderColor].join();
    };
    // A field may show the focus on its container.
    const chain = [element, element.parentElement, element.parentElement?.parentElement].filter(Boolean);
    const withFocus = chain.map(looks);
    element.blur();
    const without = chain.map(looks);
    element.focus({ preventScroll: true });
    const name = element.getAttribute("aria-label") ?? element.textContent?.trim() ?? "";
    return { name, role: element.getAttribute("role") ?? element.tagName.toLowerCase(), seen: withFocus.join() !== without.join() };
  });
}

/** Presses Tab until an element with this name has the focus. */
async function tabTo(page, wanted, key = "Tab") {
  const unseen = [];
  for (let step = 0; step < STEPS_MAX; step += 1) {
    await page.keyboard.press(key);
    const { name, role, seen } = await focused(page);
    if (!seen) unseen.push(`${role} ${name}`);
    if (wanted.test(name)) {
      assert.deepEqual(unseen, [], "the focus is seen");
      return;
    }
  }
  assert.fail(`no way by ${key} to ${wanted}`);
}

test("from sign-in to an answer and its run", async () => {
  const page = await newPage(browser, host);
  forgiveFailedRequests(page);
  await page.goto(host.url);
  await see(page.getByLabel("Token", { exact: true }));
  await page.keyboard.type(host.token);
  await page.keyboard.press("Enter");
  await see(page.getByRole("navigation").first());
  await tabTo(page, /^Chat$/);
  await page.keyboard.press("Enter");
  const field = page.getByRole("textbox", { name: "Your message" });
  await see(field);
  await page.waitForFunction(() => document.activeElement?.tagName === "TEXTAREA");
  await page.keyboard.type("schedule lunch tomorrow at 12:00");
  await page.keyboard.press("Enter");
  await see(page.locator("[data-kind=answer]"));
  await see(page.getByRole("link", { name: "Open the run" }));
  await tabTo(page, /^Open the run/, "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/runs/run_*");
  await see(page.getByText(/^assistant answered in/));
  await tabTo(page, /^Handled by assistant/);
  await page.keyboard.press("Enter");
  await see(page.getByRole("link", { name: "Open agent" }));
  await finish(page);
});

test("an approval is answered, and a run stopped", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/chat");
  const remove = { tool_name: "project_cli", tool_call_id: "c1", parameters: { module: "calendar", method: "delete", input: { event_id: "none" } } };
  await page.getByRole("combobox", { name: "Agent" }).selectOption("stage");
  const field = page.getByRole("textbox", { name: "Your message" });
  await field.focus();
  await page.keyboard.insertText(JSON.stringify([["tool", remove], ["say", "and now"], ["gate", "never"]]));
  await page.keyboard.press("Enter");
  await see(page.getByRole("region", { name: "stage asks for approval" }));
  await tabTo(page, /^Allow$/, "Shift+Tab");
  await page.keyboard.press("Enter");
  await see(page.locator("[data-kind=answer]").filter({ hasText: "and now" }));
  await field.focus();
  await page.keyboard.press("Escape");
  const dialog = page.getByRole("alertdialog").or(page.getByRole("dialog"));
  await see(dialog);
  // The focus is inside, and returns afterwards.
  assert.equal(await dialog.evaluate((element) => element.contains(document.activeElement)), true);
  await tabTo(page, /^Stop run$/);
  await page.keyboard.press("Enter");
  await see(page.getByText("The run was stopped."));
  await finish(page);
});

test("the skip link comes first", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/runs");
  await page.keyboard.press("Tab");
  assert.equal((await focused(page)).name, "Skip to content");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement?.id === "content");
  await finish(page);
});

test("menus work with the keyboard", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/runs");
  const button = await page.getByRole("button", { name: "Language" }).elementHandle();
  await button.focus();
  await page.keyboard.press("Enter");
  await see(page.getByRole("menu"));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Escape");
  await page.getByRole("menu").waitFor({ state: "hidden" });
  // The focus returns a moment after the menu closes.
  await page.waitForFunction((button) => document.activeElement === button, button);
  await finish(page);
});
