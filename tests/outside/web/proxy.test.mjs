// Behind a TLS proxy with a base path, which is passed on or stripped.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { finish, launch, newPage, say, see } from "./browser.mjs";
import { Host } from "./host.mjs";

const BASE = "/tools/greenroom";
const certificates = new URL("../../../crates/cli/tests/http/certificates/", import.meta.url);
const [cert, key] = ["one-cert.pem", "one-key.pem"].map((name) => readFileSync(new URL(name, certificates)));

let browser, host;
before(async () => {
  host = await Host.start({ more: `[server]\nbase_path = "${BASE}"\ntrusted_proxies = ["127.0.0.1"]\n` });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await host?.end();
});

/** A TLS proxy with the host under a path and another site beside it. */
async function proxy(strips) {
  const target = new URL(host.url);
  const server = createServer({ cert, key }, (asked, answer) => {
    if (!asked.url.startsWith(`${BASE}/`)) {
      answer.writeHead(418).end("somebody else's");
      return;
    }
    const headers = { ...asked.headers, host: target.host, "x-forwarded-host": asked.headers.host, "x-forwarded-proto": "https", "x-forwarded-for": "203.0.113.7" };
    const path = strips ? asked.url.slice(BASE.length) : asked.url;
    const passed = request({ host: target.hostname, port: target.port, method: asked.method, path, headers }, (reply) => {
      answer.writeHead(reply.statusCode, reply.headers);
      reply.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    answer.on("close", () => passed.destroy());
    asked.pipe(passed);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `https://localhost:${server.address().port}`, end: () => (server.closeAllConnections(), server.close()) };
}

for (const strips of [false, true]) {
  test(`the interface works under a path that the proxy ${strips ? "strips" : "passes on"}`, async () => {
    const front = await proxy(strips);
    const page = await newPage(browser, { url: front.url + BASE }, { ignoreHTTPSErrors: true });
    // Sign-in at the public URL.
    await page.goto(`${front.url}${BASE}/`);
    await page.waitForURL(`${front.url}${BASE}/signin`);
    await page.getByLabel("Token", { exact: true }).fill(host.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(`${front.url}${BASE}/`);
    const [cookie] = await page.context().cookies();
    assert.deepEqual([cookie.secure, cookie.httpOnly, cookie.path], [true, true, BASE]);

    // A live conversation through the proxy, and again after a reload.
    await page.goto(`${front.url}${BASE}/chat`);
    await page.getByRole("combobox", { name: "Agent" }).selectOption("stage");
    const gate = strips ? "stripped" : "passed";
    await say(page, [["say", "one "], ["gate", gate], ["say", "two"], ["end"]]);
    await see(page.locator("[data-kind=answer]").filter({ hasText: "one" }));
    await page.waitForURL(`${front.url}${BASE}/chat/*`);
    host.open(gate);
    await see(page.locator("[data-kind=answer]").filter({ hasText: "one two" }));
    await page.reload();
    await see(page.locator("[data-kind=answer]").filter({ hasText: "one two" }));

    // Deep links and links between pages stay under the path.
    await page.goto(`${front.url}${BASE}/runs`);
    await page.getByRole("link", { name: "Agents" }).first().click();
    await page.waitForURL(`${front.url}${BASE}/agents`);
    await see(page.getByRole("heading", { name: "Agents", level: 1 }));
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(`${front.url}${BASE}/signin*`);
    await finish(page);
    front.end();
  });
}

test("opening the host without the proxy redirects under the path", async () => {
  const at = new URL(host.url);
  const page = await newPage(browser, { url: at.origin });
  await page.goto(`${at.origin}/#code=${host.code}`);
  await page.waitForURL(`${at.origin}${BASE}/`);
  await see(page.getByRole("heading", { level: 1 }));
  await finish(page);
});
