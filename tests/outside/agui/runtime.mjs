// CopilotKit's Node runtime between a client and the host: a stop there stops the run of the host.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { HttpAgent } from "ag-ui-client-0";
import { CopilotRuntime, createCopilotEndpoint } from "@copilotkit/runtime/v2";
import { getRequestListener } from "@hono/node-server";

const [url, token] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
const agents = { puppet: new HttpAgent({ url: `${url}/v1/agui/puppet?on_disconnect=stop`, headers }) };
const app = createCopilotEndpoint({ runtime: new CopilotRuntime({ agents }), basePath: "/api" });
const server = createServer(getRequestListener(app.fetch));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const runtime = `http://127.0.0.1:${server.address().port}/api`;

const post = (path, body) => fetch(runtime + path, {
  method: "POST", headers: { "Content-Type": "application/json", Accept: "text/event-stream" }, body: JSON.stringify(body),
});
const runs = async () => (await fetch(`${url}/v1/runs?conversation_id=node`, { headers })).json();

const content = JSON.stringify([["say", "a"], ["hang"]]);
const input = { threadId: "node", runId: "node-1", state: {}, tools: [], context: [], forwardedProps: {}, messages: [{ id: "u", role: "user", content }] };
const answer = await post("/agent/puppet/run", input);
assert.equal(answer.status, 200, await (answer.ok ? "" : answer.text()));
const reader = answer.body.getReader();
let text = "";
while (!text.includes("TEXT_MESSAGE_CONTENT")) text += new TextDecoder().decode((await reader.read()).value);
assert.equal((await runs()).items[0].status, "running");
const stopped = await post("/agent/puppet/stop/node", {});
assert.equal(stopped.status, 200);
for (let looks = 0; (await runs()).items[0].status === "running" && looks < 500; looks += 1) {
  await new Promise((resolve) => setTimeout(resolve, 20));
}
assert.equal((await runs()).items[0].status, "cancelled");
console.log("ok - a stop through @copilotkit/runtime stops the run of the host");
process.exit(0);
