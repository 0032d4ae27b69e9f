// Undelivered output: shown in the overview, at its run and in the list; sent again and discarded.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { finish, launch, open, see, signedIn } from "./browser.mjs";
import { eventually, Host } from "./host.mjs";

let browser, host, receiver;
let status = 404;
const taken = [];
before(async () => {
  receiver = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      if (status < 300) taken.push(JSON.parse(body).message.content);
      response.writeHead(status).end();
    });
  });
  await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${receiver.address().port}/hook`;
  host = await Host.start({ more: `[agents.notifier]\nrunner = "plugin:greenroom/echo/default"\nevents = []\ndelivery = "hook"\n[surfaces.hook]\nkind = "webhook"\nurl = "${url}"\nallow_private = true\n` });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await host?.end();
  receiver?.close();
});

const main = (page) => page.locator("main");

async function undelivered(text) {
  const run = await host.say("notifier", text, text);
  await eventually("the delivery was refused", async () => (await host.get(`/v1/deliveries?run_id=${run}`)).items[0]?.status === "failed");
  return run;
}

test("a failed delivery is shown in the overview and at its run, and is sent again", async () => {
  status = 404;
  const run = await undelivered("first");
  const page = await signedIn(browser, host);
  await open(page, "/");
  await main(page).getByRole("link", { name: "1 delivery failed" }).click();
  await page.waitForURL("**/deliveries?status=failed");
  await see(main(page).getByText("the surface answered 404 Not Found"));
  await open(page, `/runs/${run}`);
  await see(main(page).getByText("1 delivery of this run did not arrive"));
  status = 204;
  await main(page).getByRole("button", { name: "Send again" }).click();
  await see(page.getByText("It will be sent again"));
  await eventually("it arrived", () => taken.includes("first"));
  await finish(page);
});

test("a delivery is discarded after confirmation", async () => {
  status = 404;
  const run = await undelivered("second");
  const page = await signedIn(browser, host);
  await open(page, `/deliveries?run_id=${run}`);
  await main(page).getByRole("button", { name: /to hook/ }).click();
  await see(main(page).getByText("second"));
  await main(page).getByRole("button", { name: "Discard" }).click();
  const dialog = page.getByRole("dialog").or(page.getByRole("alertdialog"));
  await dialog.getByRole("button", { name: "Keep" }).click();
  assert.equal((await host.get(`/v1/deliveries?run_id=${run}`)).items[0].status, "failed");
  await main(page).getByRole("button", { name: "Discard" }).click();
  await dialog.getByRole("button", { name: "Discard" }).click();
  await eventually("it is discarded", async () => (await host.get(`/v1/deliveries?run_id=${run}`)).items[0].status === "discarded");
  await see(main(page).getByText("An admin discarded it; it is not sent."));
  await finish(page);
});

test("a reader sees deliveries without buttons", async () => {
  status = 404;
  const run = await undelivered("third");
  const page = await signedIn(browser, host, {}, host.tokens.watcher);
  await open(page, `/deliveries?run_id=${run}`);
  await main(page).getByRole("button", { name: /to hook/ }).click();
  await see(main(page).getByText("third"));
  assert.equal(await main(page).getByRole("button", { name: "Send again" }).count(), 0);
  await finish(page);
});
