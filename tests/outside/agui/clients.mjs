// The host against `@ag-ui/client` in the given version; the client's verifier checks the events.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";

const [url, token, version] = process.argv.slice(2);
const one = version === "1";
const { HttpAgent } = await import(one ? "@ag-ui/client" : "ag-ui-client-0");

const complaints = [];
for (const level of ["warn", "error"]) {
  console[level] = (...words) => complaints.push(words.map(String).join(" "));
}

let threads = 0;
function agentFor(name = "puppet") {
  threads += 1;
  const headers = { Authorization: `Bearer ${token}` };
  return new HttpAgent({ url: `${url}/v1/agui/${name}`, headers, threadId: `v${version}-${threads}` });
}

function says(agent, content) {
  agent.addMessage({ id: `user-${crypto.randomUUID()}`, role: "user", content });
}

async function run(agent, options = {}, watch = () => {}) {
  const events = [];
  let failed;
  const subscriber = {
    onEvent: ({ event }) => { events.push(event); watch(event, agent); },
    onRunFailed: ({ error }) => { failed = error; },
  };
  try {
    await agent.runAgent(options, subscriber);
  } catch (error) {
    failed = error;
  }
  return { events, failed };
}

function play(agent, steps, options, watch) {
  says(agent, JSON.stringify(steps));
  return run(agent, options, watch);
}

const kinds = (events) => events.map((event) => event.type);
const last = (events) => events[events.length - 1];
const pass = (gate) => writeFileSync(`puppet/${gate}`, "");
const get = async (path) => {
  const answer = await fetch(url + path, { headers: { Authorization: `Bearer ${token}` } });
  return answer.json();
};

const tests = {
  async "text comes as one message"() {
    const agent = agentFor();
    const steps = [["say", "one "], ["say", "two"], ["message", "one two"], ["end"]];
    const { events, failed } = await play(agent, steps);
    assert.equal(failed, undefined);
    assert.equal(last(events).type, "RUN_FINISHED");
    assert.deepEqual(agent.messages.map((message) => message.role), ["user", "assistant"]);
    assert.equal(agent.messages[1].content, "one two");
  },

  async "a thousand deltas are one message"() {
    const agent = agentFor();
    const words = Array.from({ length: 1000 }, (_, number) => `${number} `);
    const { failed } = await play(agent, [...words.map((word) => ["say", word]), ["end"]]);
    assert.equal(failed, undefined);
    assert.equal(agent.messages[1].content, words.join(""));
  },

  async "a text that was told otherwise is replaced"() {
    const agent = agentFor();
    const { failed } = await play(agent, [["say", "wrong"], ["message", "right"], ["end"]]);
    assert.equal(failed, undefined);
    assert.deepEqual(agent.messages.map((message) => message.content).slice(1), ["right"]);
  },

  async "thoughts are messages of their own"() {
    const agent = agentFor();
    const message = { role: "assistant", content: "yes", segments: [{ type: "reasoning", text: "hm" }] };
    const { failed } = await play(agent, [["result", "message.completed", { message }], ["end"]]);
    assert.equal(failed, undefined);
    const told = agent.messages.slice(1).map(({ role, content }) => [role, content]);
    assert.deepEqual(told, [["reasoning", "hm"], ["assistant", "yes"]]);
  },

  async "a tool has its call, its result and its card"() {
    const agent = agentFor();
    const input = { title: "Sync", start_at: "2026-04-21T10:00:00+08:00", end_at: "2026-04-21T11:00:00+08:00" };
    const parameters = { module: "calendar", method: "create", input };
    const call = { tool_name: "project_cli", tool_call_id: "c1", parameters };
    const steps = [
      ["result", "tool.call.started", call],
      ["call", "tools.call", call, `made-${version}`],
      ["result", "tool.call.completed", { ...call, result: null }],
      ["message", "done"],
      ["end"],
    ];
    const { failed } = await play(agent, steps);
    assert.equal(failed, undefined);
    const [, asked, told] = agent.messages;
    assert.deepEqual(JSON.parse(asked.toolCalls[0].function.arguments), parameters);
    assert.equal(told.role, "tool");
    assert.equal(told.toolCallId, "c1");
    assert.equal(JSON.parse(told.content).data.title, "Sync");
    assert.equal(told.metadata.tool_agent_output.status, "success");
    const operations = told.metadata.ui_schema.operations;
    const card = agent.messages.find((message) => message.role === "activity");
    assert.equal(card.activityType, "a2ui-surface");
    assert.deepEqual(card.content.a2ui_operations, operations);
    // The client sends it back, which has no effect.
    const again = await play(agent, [["message", "and now"], ["end"]]);
    assert.equal(again.failed, undefined);
    assert.equal(last(agent.messages).content, "and now");
  },

  async "state is patched"() {
    const agent = agentFor();
    const set = (value) => ["result", "state.updated", { scope: "conversation", key: "a/b", value }];
    const { failed } = await play(agent, [set({ x: 1 }), set(2), ["end"]]);
    assert.equal(failed, undefined);
    assert.deepEqual(agent.state, { conversation: { "a/b": 2 } });
    await play(agent, [set(null), ["end"]]);
    assert.deepEqual(agent.state, { conversation: {} });
  },

  async "usage and artifacts are told"() {
    const agent = agentFor();
    const file = { name: "a.txt", mime_type: "text/plain", content_base64: "aGVsbG8=" };
    const usage = { usage: { input_tokens: 3, output_tokens: 4 } };
    const steps = [["result", "artifact.created", file], ["result", "run.completed", {}, usage]];
    const { events, failed } = await play(agent, steps);
    assert.equal(failed, undefined);
    const made = events.find((event) => event.type === "CUSTOM");
    assert.match(made.value.url, /^\/v1\/artifacts\//);
    assert.deepEqual(last(events).usage, [{ inputTokens: 3, outputTokens: 4 }]);
  },

  async "an approval is an interrupt, and its answer goes on"() {
    for (const [approved, code] of [[true, "NOT_FOUND"], [false, "DENIED"]]) {
      const agent = agentFor();
      const parameters = { module: "calendar", method: "delete", input: { event_id: "none" } };
      const call = { tool_name: "project_cli", tool_call_id: "c1", parameters };
      const steps = [
        ["message", "before"],
        ["result", "tool.call.started", call],
        ["call", "tools.call", call, `asked-${version}-${approved}`],
        ["result", "tool.call.completed", { ...call, result: null }],
        ["message", "behind"],
        ["end"],
      ];
      const first = await play(agent, steps);
      assert.equal(first.failed, undefined);
      const { outcome } = last(first.events);
      assert.equal(outcome.type, "interrupt");
      const [interrupt] = outcome.interrupts;
      assert.equal(interrupt.toolCallId, "c1");
      const resume = [{ interruptId: interrupt.id, status: "resolved", payload: { approved } }];
      const second = await run(agent, { resume });
      assert.equal(second.failed, undefined);
      assert.ok(!kinds(second.events).includes("TOOL_CALL_START"));
      const roles = agent.messages.map((message) => message.role);
      assert.deepEqual(roles, ["user", "assistant", "assistant", "tool", "assistant"]);
      assert.equal(agent.messages[3].metadata.tool_agent_output.error.code, code);
      assert.equal(last(agent.messages).content, "behind");
    }
  },

  async "a failure is told with its code"() {
    const agent = agentFor();
    const failing = ["result", "run.failed", { code: "my.code", message: "why" }];
    const { events } = await play(agent, [["say", "a"], failing]);
    assert.equal(last(events).type, "RUN_ERROR");
    assert.equal(last(events).code, "my.code");
    assert.equal(last(events).message, "why");
  },

  async "a cancelled run ends"() {
    const agent = agentFor();
    let stopped;
    const watch = (event) => {
      if (event.type !== "TEXT_MESSAGE_CONTENT" || stopped) return;
      const path = `${url}/v1/agui/agent/puppet/stop/${agent.threadId}`;
      stopped = fetch(path, { method: "POST", headers: { Authorization: `Bearer ${token}` } });
    };
    const { events, failed } = await play(agent, [["say", "a"], ["hang"]], {}, watch);
    assert.deepEqual(await (await stopped).json(), { stopped: 1 });
    if (one) {
      assert.equal(failed, undefined);
      assert.deepEqual(last(events).outcome, { type: "cancelled" });
    } else {
      assert.equal(last(events).code, "cancelled");
    }
  },

  async "a client that hangs up and comes back sees the run go on"() {
    const agent = agentFor();
    const gate = `go-${version}`;
    const steps = [["say", "one "], ["gate", gate], ["say", "two"], ["message", "one two"], ["end"]];
    const runId = crypto.randomUUID();
    await play(agent, steps, { runId }, (event) => {
      if (event.type === "TEXT_MESSAGE_CONTENT") agent.abortRun();
    });
    assert.equal(last(agent.messages).content, "one ");
    const back = run(agent, { runId });
    pass(gate);
    const { events, failed } = await back;
    assert.equal(failed, undefined);
    assert.equal(last(events).type, "RUN_FINISHED");
    assert.deepEqual(agent.messages.map((message) => message.role), ["user", "assistant"]);
    assert.equal(last(agent.messages).content, "one two");
    const runs = await get(`/v1/runs?conversation_id=${agent.threadId}`);
    assert.equal(runs.items.length, 1);
  },

  async "pictures go in"() {
    const agent = agentFor("teller");
    const data = "iVBORw0KGgo=";
    says(agent, [
      { type: "text", text: "look" },
      { type: "image", source: { type: "data", value: data, mimeType: "image/png" } },
    ]);
    const { failed } = await run(agent);
    assert.equal(failed, undefined);
    const told = JSON.parse(last(agent.messages).content);
    assert.equal(told.text, "look");
    assert.equal(told.contents[1].data_base64, data);
  },

  // The features of the protocol's demo application (dojo), with the built-in agent or a runner.

  async "human in the loop: a tool of the client waits for its user, and the result goes on"() {
    const agent = agentFor("dojo");
    const tools = [{ name: "confirmSteps", description: "Asks the user", parameters: { type: "object", properties: { steps: { type: "array" } } } }];
    says(agent, "plan a trip");
    const first = await run(agent, { tools });
    assert.equal(first.failed, undefined);
    const call = last(agent.messages).toolCalls[0];
    assert.equal(call.function.name, "confirmSteps");
    assert.deepEqual(JSON.parse(call.function.arguments), { steps: ["one", "two"] });
    if (one) assert.deepEqual(last(first.events).outcome, { type: "success", pendingToolCallIds: [call.id] });
    assert.ok(!kinds(first.events).includes("TOOL_CALL_RESULT"));
    agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: call.id, content: "confirmed" });
    const second = await run(agent, { tools });
    assert.equal(second.failed, undefined);
    assert.equal(last(agent.messages).content, "Then let us begin.");
    const told = agent.messages.map((message) => message.role).filter((role) => role !== "reasoning");
    assert.deepEqual(told, ["user", "assistant", "tool", "assistant"]);
  },

  async "shared state: the model reads and changes the client's state"() {
    const agent = agentFor("dojo");
    agent.setState({ title: "Soup", servings: 2 });
    says(agent, "change the recipe");
    const { events, failed } = await run(agent);
    assert.equal(failed, undefined);
    assert.ok(kinds(events).includes("STATE_DELTA"));
    assert.deepEqual(agent.state, { title: "Stew", servings: 2, ingredients: ["peas"] });
  },

  async "agentic chat: the context of the page reaches the model"() {
    const agent = agentFor("dojo");
    says(agent, "what do you see");
    await run(agent, { context: [{ description: "page", value: "The page is about soup" }] });
    assert.equal(last(agent.messages).content, "I see the soup.");
  },

  async "reasoning: it is streamed before the text"() {
    const agent = agentFor("dojo");
    says(agent, "why");
    const { events, failed } = await run(agent);
    assert.equal(failed, undefined);
    const order = kinds(events);
    assert.ok(order.indexOf("REASONING_MESSAGE_CONTENT") < order.indexOf("TEXT_MESSAGE_START"), order.join());
    const told = agent.messages.slice(1).map(({ role, content }) => [role, content]);
    assert.deepEqual(told, [["reasoning", "It has to be explained step by step."], ["assistant", "Because."]]);
  },

  async "predictive state: arguments arrive while they are written"() {
    const agent = agentFor();
    const piece = (args_text) => ["result", "tool.call.delta", { tool_call_id: "c1", tool_name: "write", args_text }];
    const call = { tool_call_id: "c1", tool_name: "write", parameters: { document: "one two" } };
    const seen = [];
    const steps = [
      ["result", "PredictState", [{ state_key: "document", tool: "write", tool_argument: "document" }]],
      piece('{"document":"one '), piece('two"}'),
      ["result", "tool.call.started", call],
      ["result", "tool.call.completed", { ...call, result: "written" }],
      ["message", "done"], ["end"],
    ];
    steps[0][2] = { predictions: steps[0][2] };
    const { failed } = await play(agent, steps, {}, (event) => {
      if (event.type === "TOOL_CALL_ARGS") seen.push(event.delta);
    });
    assert.equal(failed, undefined);
    assert.deepEqual(seen, ['{"document":"one ', 'two"}']);
    assert.deepEqual(JSON.parse(agent.messages[1].toolCalls[0].function.arguments), call.parameters);
  },

  async "agentic generative ui: the runner replaces and patches the client's state"() {
    const agent = agentFor();
    const patch = [{ op: "replace", path: "/steps/0/status", value: "completed" }];
    const steps = [
      ["result", "client.state.snapshot", { state: { steps: [{ status: "pending" }] } }],
      ["result", "client.state.delta", { patch }],
      ["end"],
    ];
    const { failed } = await play(agent, steps);
    assert.equal(failed, undefined);
    assert.deepEqual(agent.state, { steps: [{ status: "completed" }] });
  },

  async "subgraphs: steps and sub-agents"() {
    const agent = agentFor();
    const steps = [
      ["result", "step.started", { step_name: "flights" }],
      ["result", "subagent.started", { subagent_id: "s1", name: "flights" }],
      ["result", "subagent.finished", { subagent_id: "s1", result: { flight: "KL1" } }],
      ["result", "step.finished", { step_name: "flights" }],
      ["result", "step.started", { step_name: "never finished" }],
      ["end"],
    ];
    const { events, failed } = await play(agent, steps);
    assert.equal(failed, undefined);
    const shown = kinds(events).filter((kind) => /^(STEP|SUBAGENT)/.test(kind));
    assert.deepEqual(shown, ["STEP_STARTED", "SUBAGENT_STARTED", "SUBAGENT_FINISHED", "STEP_FINISHED", "STEP_STARTED", "STEP_FINISHED"]);
  },

  async "background agents: an activity and its changes"() {
    const agent = agentFor();
    const about = { message_id: "a", activity_type: "progress" };
    const steps = [
      ["result", "activity.snapshot", { ...about, content: { done: 0 } }],
      ["result", "activity.delta", { ...about, patch: [{ op: "replace", path: "/done", value: 7 }] }],
      ["end"],
    ];
    const { failed } = await play(agent, steps);
    assert.equal(failed, undefined);
    const activity = agent.messages.find((message) => message.role === "activity");
    assert.deepEqual([activity.activityType, activity.content], ["progress", { done: 7 }]);
  },

  async "reload: a client that connects sees what was seen live, with the sub-agents of texts"() {
    const agent = agentFor();
    const by = (data) => ({ ...data, subagent_id: "s1" });
    const about = { message_id: "a", activity_type: "progress" };
    const piece = (content) => ["result", "message.delta", by({ chunk: { role: "assistant", content, message_id: "m1" } })];
    const call = { tool_call_id: "c1", tool_name: "look", parameters: {} };
    const steps = [
      ["result", "reasoning.delta", { text: "hm" }],
      ["result", "step.started", { step_name: "travel" }],
      ["result", "subagent.started", { subagent_id: "s1", name: "flights" }],
      ["result", "step.started", by({ step_name: "search" })],
      ["result", "activity.snapshot", by({ ...about, content: { done: 0 } })],
      ["result", "activity.delta", { ...about, patch: [{ op: "replace", path: "/done", value: 7 }] }],
      ["result", "tool.call.started", by(call)],
      ["result", "tool.call.completed", by({ ...call, result: "KL1" })],
      ["result", "reasoning.delta", by({ text: "so" })],
      piece("fou"), piece("nd"),
      ["result", "message.completed", { message: { role: "assistant", content: "found", message_id: "m1" } }],
      ["result", "subagent.finished", { subagent_id: "s1" }],
      ["result", "step.finished", { step_name: "travel" }],
      ["message", "done"],
      ["end"],
    ];
    const live = await play(agent, steps);
    assert.equal(live.failed, undefined);
    const headers = { Authorization: `Bearer ${token}` };
    const back = new HttpAgent({ url: `${url}/v1/agui/agent/puppet/connect`, headers, threadId: agent.threadId });
    const again = await run(back);
    assert.equal(again.failed, undefined);
    const seen = ({ messages }) => messages.map(({ role, content, activityType, subagentRunId }) => [role, content, activityType, subagentRunId]);
    assert.deepEqual(seen(back), seen(agent));
    const own = "s1";
    assert.deepEqual(seen(back).slice(1), [
      ["reasoning", "hm", undefined, undefined],
      ["activity", { done: 7 }, "progress", own],
      ["assistant", undefined, undefined, own],
      ["tool", "KL1", undefined, own],
      ["reasoning", "so", undefined, own],
      ["assistant", "found", undefined, own],
      ["assistant", "done", undefined, undefined],
    ]);
    const progress = ({ events }) => kinds(events).filter((kind) => /^(STEP|SUBAGENT)/.test(kind));
    assert.deepEqual(progress(again), progress(live));
    assert.equal(progress(again).length, 6);
  },

  async "interrupt: the answer may edit the arguments"() {
    const agent = agentFor();
    const parameters = { module: "calendar", method: "delete", input: { event_id: "none" } };
    const call = { tool_name: "project_cli", tool_call_id: "c1", parameters };
    const steps = [
      ["result", "tool.call.started", call],
      ["call", "tools.call", call, `edited-${version}`],
      ["result", "tool.call.completed", { ...call, result: null }],
      ["end"],
    ];
    const first = await play(agent, steps);
    const [interrupt] = last(first.events).outcome.interrupts;
    const editedArgs = { ...parameters, input: { event_id: "another" } };
    const resume = [{ interruptId: interrupt.id, status: "resolved", payload: { approved: true, editedArgs } }];
    const second = await run(agent, { resume });
    assert.equal(second.failed, undefined);
    const result = agent.messages.find((message) => message.role === "tool");
    assert.deepEqual(result.metadata.tool_agent_output.tool_call_args, editedArgs);
  },

  async "edit and resend: the edited message is answered in place of the first"() {
    const agent = agentFor("dojo");
    says(agent, "first");
    await run(agent);
    const kept = agent.messages.slice();
    says(agent, "second");
    await run(agent);
    const id = agent.messages[2].id;
    agent.setMessages([...kept, { id, role: "user", content: "instead" }]);
    const { failed } = await run(agent);
    assert.equal(failed, undefined);
    assert.deepEqual(agent.messages.map(({ content }) => content), ["first", "You said: first", "instead", "You said: instead"]);
  },

  async "an agent that does not exist is a refusal"() {
    const agent = agentFor("nobody");
    says(agent, "hi");
    const { failed } = await run(agent);
    assert.match(String(failed), /404/);
  },
};

const failing = new Set([
  "a failure is told with its code",
  "a cancelled run ends",
  "an agent that does not exist is a refusal",
]);

for (const [name, test] of Object.entries(tests)) {
  complaints.length = 0;
  try {
    await test();
    // The client logs what it drops or repairs, and failed runs, which are expected.
    const unexpected = failing.has(name) ? [] : complaints;
    assert.deepEqual(unexpected, []);
  } catch (error) {
    console.log(`not ok - ${name} (@ag-ui/client ${one ? "1.0.0" : "0.0.59"})`);
    console.log(error);
    console.log(complaints);
    process.exit(1);
  }
}
console.log(`ok - ${Object.keys(tests).length} tests with @ag-ui/client ${one ? "1.0.0" : "0.0.59"}`);
process.exit(0);
