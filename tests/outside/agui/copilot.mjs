// `@copilotkit/core` against the host's runtime routes: connect, run, reconnect.
import assert from "node:assert/strict";

// The core makes no requests without a window.
globalThis.window = globalThis;
const { CopilotKitCore } = await import("@copilotkit/core");

const [url, token] = process.argv.slice(2);

async function core() {
  const headers = { Authorization: `Bearer ${token}` };
  const made = new CopilotKitCore({ runtimeUrl: `${url}/v1/agui`, runtimeTransport: "rest", headers });
  for (let looks = 0; made.runtimeConnectionStatus !== "connected" && looks < 500; looks += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(made.runtimeConnectionStatus, "connected");
  return made;
}

const first = await core();
assert.deepEqual(Object.keys(first.agents).sort(), ["assistant", "dojo", "echo", "puppet", "teller"]);
const agent = first.getAgent("puppet");
agent.threadId = "copilot";
agent.addMessage({ id: "u1", role: "user", content: JSON.stringify([["say", "hel"], ["message", "hello"], ["end"]]) });
await first.runAgent({ agent });
assert.equal(agent.messages.at(-1).content, "hello");

const second = await core();
const back = second.getAgent("puppet");
back.threadId = "copilot";
await second.connectAgent({ agent: back });
assert.deepEqual(back.messages.map((message) => message.role), ["user", "assistant"]);
assert.equal(back.messages.at(-1).content, "hello");
console.log("ok - @copilotkit/core 1.75.0 connects, runs and connects again");
process.exit(0);
