// The host's cards in a real browser with the two real renderers: shown, pressed once, and no message is repeated.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const [url, token, port] = process.argv.slice(2);
const bundle = await build({
  entryPoints: [new URL("cards.jsx", import.meta.url).pathname],
  bundle: true, write: false, format: "iife", jsx: "automatic", logLevel: "error",
  define: { "process.env.NODE_ENV": '"production"' },
  loader: { ".css": "empty" },
});
const script = bundle.outputFiles[0].text;
const get = async (path) => (await fetch(url + path, { headers: { Authorization: `Bearer ${token}` } })).json();

const server = createServer((request, response) => {
  const renderer = new URL(request.url, "http://x").searchParams.get("renderer");
  response.setHeader("Content-Type", "text/html; charset=utf-8");
  const settings = JSON.stringify({ url, token, renderer });
  response.end(`<!doctype html><div id="root"></div><script>window.settings = ${settings};</script><script>${script.replaceAll("</script", "<\\/script")}</script>`);
});
await new Promise((resolve) => server.listen(Number(port), "127.0.0.1", resolve));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  for (const renderer of ["a2ui", "copilotkit"]) {
    const page = await browser.newPage();
    page.setDefaultTimeout(30_000);
    const problems = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    await page.goto(`http://127.0.0.1:${port}/?renderer=${renderer}`);
    await page.getByText("Sync", { exact: false }).first().waitFor();
    const thread = `cards-${renderer}`;
    const before = await get(`/v1/runs?conversation_id=${thread}`);
    assert.equal(before.items.length, 1);
    await page.getByText("Delete", { exact: true }).first().click();
    await page.waitForFunction(() => window.outcomes.length === 2);
    const [pressed, outcomes] = await page.evaluate(() => [window.presses, window.outcomes]);
    assert.equal(pressed.length, 1);
    assert.equal(pressed[0].name, "calendar.delete");
    assert.equal(outcomes[1].type, "interrupt", JSON.stringify(outcomes));
    const events = await get(`/v1/events?conversation_id=${thread}`);
    const sent = events.items.filter((event) => event.source === "agui").map((event) => event.event_type).sort();
    assert.deepEqual(sent, ["card.action", "message.received"]);
    assert.deepEqual(problems, []);
    console.log(`ok - a card is shown and pressed in ${renderer}, catalogue ${await page.evaluate(() => window.catalogId)}`);
    await page.close();
  }
} finally {
  await browser.close();
  server.close();
}
process.exit(0);
