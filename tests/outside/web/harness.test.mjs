// External harnesses in the chat: a fake one over the Agent Client Protocol.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chooseAgent, finish, launch, open, PHONE, say, see, seriousProblems, sidewaysScroll, signedIn } from "./browser.mjs";
import { Host } from "./host.mjs";

const FAKE = fileURLToPath(new URL("../../../crates/cli/tests/harness/fake.py", import.meta.url));
const shots = process.env.SHOTS;

let browser, host;
before(async () => {
  const more = `[runners.coder]\nwire = "acp"\ncommand = ["python3", ${JSON.stringify(FAKE)}]\nnetwork = false
[agents.coder]\nrunner = "plugin:harness/coder/default"\nevents = []\nconfig = { keys = "own" }\n`;
  host = await Host.start({ more });
  browser = await launch();
  if (shots) mkdirSync(shots, { recursive: true });
});
after(async () => {
  await browser?.close();
  await host?.end();
});

const TALL = { viewport: { width: 1280, height: 1500 } };
const plan = (page) => page.locator("[data-kind=plan]");
const diff = (page) => page.locator("[data-kind=diff]");
const tool = (page, name) => page.locator("[data-kind=tool]").filter({ hasText: name });

async function shot(page, name) {
  if (shots) await page.screenshot({ path: join(shots, `harness-${name}.png`) });
}

for (const [name, options] of [
  ["en-light", { ...TALL, colorScheme: "light" }],
  ["zh-dark", { ...TALL, colorScheme: "dark", locale: "zh-CN" }],
  ["phone", { viewport: PHONE }],
]) {
  test(`the plan fills, changes are diffs, and questions have buttons: ${name}`, async () => {
    const page = await signedIn(browser, host, options);
    const zh = name.startsWith("zh");
    await open(page, "/chat");
    if (zh) {
      await page.getByRole("combobox", { name: "智能体" }).selectOption("coder");
      const field = page.getByRole("textbox", { name: "你的消息" });
      await field.fill(`work ${name}.md`);
      await field.press("Enter");
    } else {
      await chooseAgent(page, "coder");
      await say(page, `work ${name}.md`);
    }
    await see(plan(page));
    await see(plan(page).locator("[data-state=in_progress]").getByText("Change the greeting"));
    const question = page.locator("[data-kind=approval]");
    const allow = question.getByRole("button", { name: zh ? "允许" : "Allow" });
    await see(allow);
    await shot(page, `${name}-asked`);
    await allow.click();
    const text = page.locator("[data-kind=answer]").getByText("All tests pass.");
    await see(text);
    assert.equal(await plan(page).count(), 1, "one list, which fills");
    assert.equal(await plan(page).locator("[data-state=completed]").count(), 3);
    // The change is shown without a click, only its lines and those around them.
    const sides = await diff(page).first().locator("[data-side]").evaluateAll((lines) => lines.map((line) => line.dataset.side));
    assert.deepEqual(sides, ["gap", "both", "both", "both", "left", "right", "right", "both", "both", "both", "gap"]);
    const run = tool(page, "make test");
    await run.getByRole("button").first().click();
    await see(run.getByText("$ make test"));
    await see(run.getByText("12 passed, 0 failed"));
    await see(page.getByText(`${name}.md`, { exact: true }));
    await shot(page, name);
    assert.deepEqual(await seriousProblems(page), []);
    assert.ok((await sidewaysScroll(page)) <= 0);
    await finish(page);
  });
}
