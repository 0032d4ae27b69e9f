// Untrusted text never becomes script, wherever it is shown.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { finish, forgive, launch, open, PAGES, see, settled, signedIn } from "./browser.mjs";
import { Host } from "./host.mjs";

const RUN = "document.title='owned'";
const EVIL = `<img src=x onerror="${RUN}"><script>${RUN}</script><svg onload="${RUN}"></svg>`;
const CONVERSATION = `c<img src=x onerror=${RUN}>`;
const MARKDOWN = `
${EVIL}

[click me](javascript:${RUN}) [data](data:text/html,<script>alert(1)</script>) [mixed](JaVaScRiPt&colon;${RUN})
<a href="javascript:${RUN}">raw</a> [vb](vbscript:x) [far](https://example.com/page)
![picture](https://tracker.example.com/pixel.png) ![svg](data:image/svg+xml,<svg onload="${RUN}"/>)
<iframe src="https://example.com"></iframe> <style>* { background: url(https://tracker.example.com/css) }</style>
<form action="https://example.com"><button>send</button></form> <meta http-equiv="refresh" content="0;url=https://example.com">

\`\`\`html
${EVIL}
\`\`\`
`;
/** File names without path separators, which the host would refuse. */
const FILE = `<img src=x onerror="${RUN}">.txt`;
const PAGE = `<html><body>${EVIL}</body></html>`;

let browser, host, run;
before(async () => {
  host = await Host.start();
  browser = await launch();
  const call = { tool_name: EVIL, tool_call_id: "c1", parameters: { [EVIL]: EVIL } };
  const surface = { surfaceId: "s1", catalogId: "https://example.com/evil.json" };
  const components = [
    { id: "root", component: "Column", children: ["t", "i", "b"] },
    { id: "t", component: "Text", text: EVIL },
    { id: "i", component: "Image", url: "https://tracker.example.com/card.png" },
    { id: "b", component: "Button", child: "t", action: { event: { name: `javascript:${RUN}`, context: {} } } },
  ];
  const operations = [
    { version: "v0.9", createSurface: surface },
    { version: "v0.9", updateComponents: { surfaceId: "s1", components } },
  ];
  const base64 = (text) => Buffer.from(text).toString("base64");
  run = await host.say("stage", [
    ["result", "tool.call.started", call],
    ["result", "tool.call.completed", { ...call, result: { html: EVIL, ui_schema: { operations } } }],
    ["result", "artifact.created", { name: FILE, mime_type: "text/plain", content_base64: base64(EVIL) }],
    ["result", "artifact.created", { name: "page.html", mime_type: "text/html", content_base64: base64(PAGE) }],
    ["result", "artifact.created", { name: "p.svg", mime_type: "image/svg+xml", content_base64: base64(`<svg xmlns="http://www.w3.org/2000/svg" onload="${RUN}"/>`) }],
    ["result", "state.updated", { scope: "conversation", key: EVIL.slice(0, 200), value: { [EVIL]: EVIL } }],
    ["result", EVIL.slice(0, 60), { html: EVIL }],
    ["message", MARKDOWN],
    ["end"],
  ], CONVERSATION);
  await host.say("stage", EVIL, CONVERSATION);
  await host.say("stage", [["fail", "runner.evil", EVIL]], CONVERSATION);
  await host.say("echo", EVIL, CONVERSATION);
});
after(async () => {
  await browser?.close();
  await host?.end();
});

test("deeply nested text is shown and does not crash the page", async () => {
  await host.say("echo", `${">".repeat(6_000)}deep`, "nested");
  await host.say("echo", `${"[".repeat(20_000)}wide`, "nested");
  const page = await signedIn(browser, host);
  await open(page, "/chat/nested");
  await see(page.locator("[data-kind=answer]").filter({ hasText: "wide" }));
  await see(page.getByRole("textbox", { name: "Your message" }));
  const { items } = await host.get("/v1/runs?conversation_id=nested");
  for (const { run_id } of items) {
    await open(page, `/runs/${run_id}`);
    await see(page.getByText(/^echo answered in/));
  }
  await open(page, "/conversations?id=nested");
  await see(page.getByRole("link", { name: "Open in chat" }));
  await finish(page);
});

test("a conversation full of script stays text", async () => {
  const page = await signedIn(browser, host);
  await open(page, `/chat/${encodeURIComponent(CONVERSATION)}`);
  await see(page.locator("[data-kind=user]").filter({ hasText: "onerror" }));
  await page.locator("[role=log]").evaluate((log) => log.scrollTo(0, 0));
  const answer = page.locator("[data-kind=answer]").filter({ hasText: "click me" });
  await see(answer.getByRole("link", { name: "far" }));
  assert.equal(await answer.locator("script, iframe, style, form, meta, img, svg[onload], [onerror]").count(), 0);
  const links = await answer.locator("a[href]").evaluateAll((all) => all.map((link) => link.href));
  assert.ok(links.length > 0);
  for (const link of links) assert.match(link, /^https:\/\//);
  const far = answer.getByRole("link", { name: "far" });
  assert.equal(await far.getAttribute("target"), "_blank");
  assert.match(await far.getAttribute("rel"), /noopener/);
  for (const tool of await page.locator("[data-kind=tool] button[aria-expanded=false]").all()) await tool.click();
  await see(page.getByText("onerror").first());
  await finish(page);
});

test("a run full of script stays text, in its timeline, raw and compared", async () => {
  const page = await signedIn(browser, host);
  await open(page, `/runs/${run}`);
  await page.getByRole("button", { name: "Expand all" }).click();
  await see(page.getByText("onerror").first());
  await page.getByRole("tab", { name: "Raw" }).click();
  await see(page.getByText("onerror").first());
  const { items } = await host.get(`/v1/runs?conversation_id=${encodeURIComponent(CONVERSATION)}`);
  for (const { run_id } of items) {
    await open(page, `/runs/${run_id}`);
    await open(page, `/runs/compare?a=${run}&b=${run_id}`);
  }
  await finish(page);
});

test("every page with these facts runs no script, in both languages", async () => {
  for (const locale of ["en-US", "zh-CN"]) {
    const page = await signedIn(browser, host, { locale });
    const { items } = await host.get("/v1/events?limit=200");
    const conversation = encodeURIComponent(CONVERSATION);
    for (const path of [...PAGES, `/events/${items[0].event_id}`, `/conversations?id=${conversation}`]) await open(page, path);
    await finish(page);
  }
});

test("files with script in their names or content are shown as text and sent as attachments", async () => {
  const page = await signedIn(browser, host);
  const { items } = await host.get("/v1/artifacts?limit=200");
  assert.deepEqual(items.map(({ name }) => name).sort(), [FILE, "p.svg", "page.html"].sort());
  for (const { artifact_id } of items) {
    const answer = await page.request.get(`${host.url}/v1/artifacts/${artifact_id}`);
    assert.match(answer.headers()["content-disposition"], /^attachment/);
    assert.equal(answer.headers()["x-content-type-options"], "nosniff");
    await open(page, `/artifacts?id=${artifact_id}`);
    const dialog = page.getByRole("dialog");
    await see(dialog);
    await see(dialog.getByText(/onerror|onload/).first());
    assert.equal(await dialog.locator("iframe, object, embed, script").count(), 0);
    // Opened as a page, it is still a download.
    await Promise.all([
      page.waitForEvent("download"),
      page.goto(`${host.url}/v1/artifacts/${artifact_id}`).catch((error) => assert.match(String(error), /Download is starting|ERR_ABORTED/)),
    ]);
  }
  await finish(page);
});

test("script in the URL stays text", async () => {
  const page = await signedIn(browser, host);
  forgive(page, /status of 40[04]/);
  const words = encodeURIComponent(EVIL);
  for (const path of [
    `/agents/${words}`, `/runs/${words}`, `/events/${words}`, `/chat/${words}`, `/runs?agent=${words}&status=${words}&conversation=${words}`,
    `/audit?method=${words}&run_id=${words}`, `/conversations?q=${words}`, `/artifacts?id=${words}`, `/runs/compare?a=${words}&b=${words}`,
    `/signin?next=javascript:${encodeURIComponent(RUN)}`, `/signin?next=${encodeURIComponent("//example.com/")}`,
  ]) {
    await page.goto(host.url + path);
    await settled(page);
    assert.equal(new URL(page.url()).origin, host.url);
  }
  await finish(page);
});

test("signing in never redirects to another site", async () => {
  for (const next of ["//example.com/", "https://example.com/", `javascript:${RUN}`, "\\\\example.com"]) {
    const page = await signedIn(browser, host);
    await page.context().clearCookies();
    forgive(page, /status of 401/);
    await page.goto(`${host.url}/signin?next=${encodeURIComponent(next)}`);
    await page.getByLabel("Token", { exact: true }).fill(host.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL((url) => url.pathname !== "/signin");
    assert.equal(new URL(page.url()).origin, host.url);
    await finish(page);
  }
});

test("the content security policy allows no other script", async () => {
  const page = await signedIn(browser, host);
  const answer = await page.request.get(`${host.url}/`, { headers: { Accept: "text/html" } });
  const policy = answer.headers()["content-security-policy"];
  assert.match(policy, /default-src 'self'|default-src 'none'/);
  assert.match(policy, /script-src 'self'(;|$)/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.match(policy, /base-uri 'none'/);
  assert.match(policy, /object-src 'none'/);
  assert.ok(!/unsafe-eval|script-src[^;]*unsafe-inline/.test(policy));
  assert.equal(answer.headers()["x-content-type-options"], "nosniff");
  assert.doesNotMatch(await answer.text(), /<script(?![^>]*\bsrc=)/, "no inline script");
  await page.context().close();
});
