// Runs: timeline, list and comparison.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { finish, gone, launch, open, see, signedIn } from "./browser.mjs";
import { Host } from "./host.mjs";

let browser, host, refused, failed, lunch;
before(async () => {
  host = await Host.start();
  browser = await launch();
  lunch = await host.say("assistant", "schedule lunch tomorrow at 12:00", "lunch");
  refused = await host.say("stage", [
    ["call", "events.page", { limit: 1 }],
    ["call", "tools.call", { tool_name: "secrets.read", tool_call_id: "c1", parameters: {} }],
    ["message", "I tried"],
    ["end"],
  ], "refusals");
  failed = await host.say("stage", [["fail", "runner.broken", "no paper left"]], "refusals");
});
after(async () => {
  await browser?.close();
  await host?.end();
});

const main = (page) => page.locator("main");

test("the timeline shows a run from its event to its end, in order", async () => {
  const page = await signedIn(browser, host);
  await open(page, `/runs/${lunch}`);
  await see(main(page).getByText(/^assistant answered in/));
  await see(main(page).getByText("schedule lunch tomorrow at 12:00"));
  const titles = ["Input", "Agent and grant", "Steps", "Outcome"];
  const places = [];
  for (const title of titles) {
    const section = main(page).getByRole("button", { name: new RegExp(`^${title}`) });
    await section.scrollIntoViewIfNeeded();
    places.push((await section.boundingBox()).y + (await page.evaluate(() => window.scrollY)));
  }
  assert.deepEqual(places, places.toSorted((a, b) => a - b));
  for (const words of ["Handled by assistant", "Grant of this run", /^Called the model/, /^Called the tool/, "Completed"]) {
    const entry = main(page).getByText(words).first();
    await entry.scrollIntoViewIfNeeded();
    await see(entry);
  }
  // Model calls show tokens; a scripted model has no price.
  await main(page).getByRole("button", { name: /Called the model/ }).first().click();
  await see(main(page).getByText("Input tokens"));
  // Raw API data.
  await page.getByRole("tab", { name: "Raw" }).click();
  await see(main(page).getByText(lunch));
  await page.getByRole("tab", { name: "Grant", exact: true }).click();
  await see(main(page).getByText(/history/).first());
  await finish(page);
});

test("refusals are explained", async () => {
  const page = await signedIn(browser, host);
  await open(page, `/runs/${refused}`);
  await see(main(page).getByText(/2 calls were refused/i));
  await page.getByRole("button", { name: /^Problems/ }).click();
  const refusals = main(page).getByRole("button", { name: /^Refused:/ });
  await see(refusals);
  assert.equal(await refusals.count(), 2);
  await see(main(page).getByText(/secrets\.read/));
  await see(main(page).getByText("The runner does not request this permission in its manifest"));
  await see(main(page).getByText(/Check the name and the grant of agent stage/));
  await refusals.filter({ hasText: "event log" }).click();
  await see(main(page).getByText("unauthorized", { exact: true }));
  await finish(page);
});

test("a failed run shows why and what to do", async () => {
  const page = await signedIn(browser, host);
  await open(page, `/runs/${failed}`);
  await see(main(page).getByText(/^stage failed after/));
  await see(main(page).getByText("no paper left"));
  await see(main(page).getByText("runner.broken"));
  await finish(page);
});

test("the list of runs is filtered by status, agent, conversation and id, and the URL keeps the filters", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/runs");
  const rows = page.getByRole("table", { name: "Runs" }).locator("tbody tr");
  await see(rows);
  const count = (wanted) => page.waitForFunction((n) => document.querySelectorAll("main tbody tr").length === n, wanted);
  await count(3);
  await page.getByLabel("Status", { exact: true }).selectOption("failed");
  await count(1);
  await see(rows.getByText("Failed"));
  assert.match(page.url(), /status=failed/);
  await page.reload();
  await count(1);
  await page.getByLabel("Status", { exact: true }).selectOption("");
  await page.getByLabel("Agent", { exact: true }).selectOption("assistant");
  await count(1);
  await see(rows.getByText("lunch"));
  await page.getByLabel("Agent", { exact: true }).selectOption("");
  await page.getByLabel("Conversation", { exact: true }).fill("refusals");
  await count(2);
  await page.getByLabel("Conversation", { exact: true }).fill("nowhere");
  await see(page.getByText("No runs match these filters"));
  await page.getByRole("button", { name: "Clear filters" }).first().click();
  await count(3);
  await finish(page);
});

test("the list is live", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/runs?conversation=live");
  await host.send("stage", [["say", "hm"], ["gate", "live"], ["end"]], "live");
  const rows = page.getByRole("table", { name: "Runs" }).locator("tbody tr");
  await see(rows.getByText("Running"));
  host.open("live");
  await see(rows.getByText("Completed"));
  await finish(page);
});

test("a run is watched live and cancelled after confirmation", async () => {
  const page = await signedIn(browser, host);
  const { run_id } = await host.send("stage", [["say", "thinking aloud"], ["gate", "never"]], "watched");
  await open(page, `/runs/${run_id}`);
  await see(main(page).getByText("stage is running."));
  await see(main(page).getByText("thinking aloud"));
  await page.getByRole("button", { name: "Cancel run" }).click();
  await page.getByRole("dialog").or(page.getByRole("alertdialog")).getByRole("button", { name: "Cancel run" }).click();
  await see(main(page).getByText(/^stage was cancelled after/));
  assert.equal((await host.get(`/v1/runs/${run_id}`)).status, "cancelled");
  await finish(page);
});

test("a run is replayed with another agent and compared with the first", async () => {
  const page = await signedIn(browser, host);
  const first = await host.say("stage", [["message", "good morning"], ["end"]], "again");
  await open(page, `/runs/${first}`);
  await page.getByRole("button", { name: "Run again" }).click();
  const dialog = page.getByRole("dialog").or(page.getByRole("alertdialog"));
  await dialog.getByLabel("Agent").selectOption("echo");
  await dialog.getByRole("button", { name: "Run again" }).click();
  await page.waitForURL((url) => url.pathname.startsWith("/runs/run_") && !url.pathname.endsWith(first));
  await see(main(page).getByText("Replay of an earlier run"));
  await see(main(page).getByText(/^echo answered in/));
  await page.getByRole("link", { name: "Compare with the original" }).click();
  await page.waitForURL("**/runs/compare?a=*");
  await see(page.getByRole("heading", { name: "Compare two runs" }));
  await see(page.getByText("Differs").first());
  await see(page.getByRole("cell", { name: "echo", exact: true }));
  await see(page.getByRole("cell", { name: "stage", exact: true }));
  await see(page.locator("del", { hasText: "good" }).or(page.locator("ins")));
  await finish(page);
});

test("two runs are selected in the list and compared", async () => {
  const page = await signedIn(browser, host);
  await open(page, "/runs");
  const boxes = page.getByRole("checkbox", { name: /^Select for comparison/ });
  await boxes.nth(0).check();
  await boxes.nth(1).check();
  await page.getByRole("button", { name: "Compare" }).or(page.getByRole("link", { name: "Compare" })).first().click();
  await page.waitForURL("**/runs/compare?a=run_*&b=run_*");
  await see(page.getByText("At a glance"));
  await finish(page);
});

test("an unknown id shows an error", async () => {
  const page = await signedIn(browser, host);
  page.forgiven.push(/status of 404/);
  await open(page, "/runs/run_00000000000000000000000000000000");
  await see(page.getByText("It does not exist, or you may not see it."));
  await gone(page.getByRole("button", { name: "Cancel run" }));
  await finish(page);
});
