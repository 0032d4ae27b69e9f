// Pictures of the main pages for the README: `node shots.mjs [FOLDER]`, by default docs/images.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, open, say, see, signedIn } from "./browser.mjs";
import { eventually, Host } from "./host.mjs";

const folder = process.argv[2] ?? fileURLToPath(new URL("../../../docs/images", import.meta.url));

const host = await Host.start();
const browser = await launch();
try {
  await told(host);
  const page = await signedIn(browser, host);
  const run = await conversation(page);
  await shot(page, "chat");
  await open(page, "/runs");
  await see(page.locator("tbody tr"));
  await shot(page, "runs");
  await open(page, `/runs/${run}`);
  await see(page.getByText(/^Used the tool/));
  await shot(page, "run");
  await open(page, "/agents");
  await page.getByLabel("Conversation").fill("vip");
  await page.getByRole("button", { name: "Find out" }).click();
  await see(page.getByText("narrow would take it."));
  await shot(page, "agents");
  await open(page, "/");
  await see(page.locator("main canvas"));
  await shot(page, "overview");
  await page.context().close();

  const dark = await signedIn(browser, host, { colorScheme: "dark" });
  await open(dark, `/runs/${run}`);
  await see(dark.getByText(/^Used the tool/));
  await shot(dark, "run-dark");
  await dark.context().close();

  const chinese = await signedIn(browser, host, { locale: "zh-CN" });
  await open(chinese, "/chat");
  const field = chinese.locator("main textarea");
  await chinese.locator("main select").first().selectOption("assistant");
  await field.fill("帮我建一个明天下午三点的会议");
  await field.press("Enter");
  await see(chinese.locator("[data-kind=tool][data-state=done]").getByText("会议", { exact: true }));
  await see(chinese.locator("[data-kind=answer]"));
  await chinese.waitForFunction(() => !document.querySelector("[class*=streaming]"));
  await shot(chinese, "chat-zh");
  await chinese.context().close();
} finally {
  await browser.close();
  await host.end();
}

/** Some life before the pictures: answers, a tool, a failure, a refusal. */
async function told(on) {
  const remove = { tool_name: "project_cli", tool_call_id: "c1", parameters: { module: "calendar", method: "delete", input: { event_id: "none" } } };
  for (const text of ["hello", "remember that I like tea", "what do I like?", "list tools", "明天有什么安排"]) await on.say("assistant", text, "everyday");
  await on.say("echo", "is anybody there?", "support-42");
  await on.say("stage", [["call", "tools.call", { tool_name: "files.delete", tool_call_id: "c1", parameters: {} }], ["message", "I was not allowed to."], ["end"]], "support-42");
  await on.say("stage", [["say", "Let me see"], ["fail", "runner.broken", "the printer is out of paper"]], "printer");
  await on.send("stage", [["tool", remove], ["end"]], "calendar");
  await eventually("an approval waits", async () => (await on.get("/v1/approvals?status=pending")).items.length > 0);
}

/** A conversation with a card; gives its last run. */
async function conversation(page) {
  await open(page, "/chat");
  await page.getByRole("combobox", { name: "Agent" }).selectOption("assistant");
  await say(page, "schedule lunch with Ada tomorrow at 12:00");
  await see(page.locator("[data-kind=tool][data-state=done]").getByText("lunch with Ada", { exact: true }));
  await see(page.getByRole("link", { name: "Open the run" }));
  const { items } = await host.get("/v1/runs?limit=1");
  return items[0].run_id;
}

/** Small enough for a repository: the browser itself writes them with few colours where it can. */
async function shot(page, name) {
  await page.evaluate(() => document.fonts.ready);
  await page.mouse.move(0, 0);
  writeFileSync(join(folder, `${name}.png`), await page.screenshot({ animations: "disabled", caret: "hide" }));
}
