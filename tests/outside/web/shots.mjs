// Screenshots of the main pages for the README: `node shots.mjs [FOLDER]`, by default docs/images.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, open, say, see, signedIn } from "./browser.mjs";
import { Host } from "./host.mjs";

const folder = process.argv[2] ?? fileURLToPath(new URL("../../../docs/images", import.meta.url));

const host = await Host.start({ config: "shots.toml" });
const browser = await launch();
try {
  const page = await signedIn(browser, host);
  await everyday();
  const run = await lunch(page);
  await shot(page, "chat");
  await open(page, `/runs/${run}`);
  await see(page.getByText(/^Called the tool/));
  await shot(page, "run");
  await askedToDelete(page);
  await shot(page, "approval");
  await open(page, "/runs");
  await see(page.locator("tbody tr"));
  await shot(page, "runs");
  await open(page, "/agents");
  await page.getByLabel("Conversation").fill("support-42");
  await page.getByRole("button", { name: "Check" }).click();
  await see(page.getByText("support would handle it."));
  await shot(page, "agents");
  await open(page, "/");
  await see(page.locator("main canvas"));
  await shot(page, "overview");
  await page.context().close();

  const dark = await signedIn(browser, host, { colorScheme: "dark" });
  await open(dark, `/runs/${run}`);
  await see(dark.getByText(/^Called the tool/));
  await shot(dark, "run-dark");
  await dark.context().close();

  const chinese = await signedIn(browser, host, { locale: "zh-CN" });
  await open(chinese, "/chat");
  await chinese.locator("main select").first().selectOption("assistant");
  const field = chinese.locator("main textarea");
  await field.fill("帮我建一个明天下午三点的会议");
  await field.press("Enter");
  await see(chinese.locator("[data-kind=tool][data-state=done]").getByText("会议", { exact: true }));
  await see(chinese.getByRole("link", { name: /打开这次运行/ }));
  await shot(chinese, "chat-zh");
  await chinese.context().close();
} finally {
  await browser.close();
  await host.end();
}

/** Data for the screenshots: answers, a refusal, failures. */
async function everyday() {
  for (const text of ["remember that I like tea", "what do I like?"]) await host.say("assistant", text, "tea");
  await host.say("support", "Where is my order?", "support-42");
  for (const name of ["disk", "backup"]) {
    const { run_id } = await host.ask("POST", "/v1/events", { event_type: `alert.${name}`, conversation_id: `alerts-${name}`, data: { severity: "high" }, input: { text: `${name} needs a look` } });
    await host.runEnded(run_id);
  }
}

/** A conversation with a card; returns its run. */
async function lunch(page) {
  await open(page, "/chat");
  await page.getByRole("combobox", { name: "Agent" }).selectOption("assistant");
  await say(page, "schedule lunch with Ada tomorrow at 12:00");
  await see(page.locator("[data-kind=tool][data-state=done]").getByText("lunch with Ada", { exact: true }));
  await see(page.getByRole("link", { name: "Open the run" }));
  const { items } = await host.get("/v1/runs?limit=1");
  return items[0].run_id;
}

/** The same conversation, where deleting needs approval. */
async function askedToDelete(page) {
  const { items } = await host.get("/v1/runs?limit=1");
  await open(page, `/chat/${encodeURIComponent(items[0].conversation_id)}`);
  const record = /rec_\w+/.exec(await page.locator("[data-kind=answer]").last().innerText());
  await say(page, `delete ${record}`);
  await see(page.getByRole("region", { name: "assistant asks for approval" }));
  await see(page.getByTitle("1 approval waits"));
}

async function shot(page, name) {
  await page.evaluate(() => document.fonts.ready);
  await page.mouse.move(0, 0);
  writeFileSync(join(folder, `${name}.png`), await page.screenshot({ animations: "disabled", caret: "hide" }));
}
