// Bindings as sentences.

import { describe, expect, it } from "vitest";
import { bindingSentences, isolationSay, whySay, type Binding } from "./binding";

const words = { duration: (ms: number) => `${String(ms / 1_000)} s`, money: (amount: number) => `$${String(amount)}` };
const agent: Binding = {
  events: ["message.received", "issue.*"], scope: { workspace: null, bot: null, conversation: "c1", actor: null }, filters: { "data.severity": ["high", 1] },
  queue: "steer", deadline_s: 90, on_interrupt: "retry", delivery: "helpdesk", built_in: false, budget: { run_usd: 0.5, day_usd: null },
};
const anywhere = { workspace: null, bot: null, conversation: null, actor: null };
const keys = (one: Binding) => bindingSentences(one, words).map((text) => text.key.slice("agents.bind.".length));

describe("bindingSentences", () => {
  it("describes events, scope, queue and limits", () => {
    expect(keys(agent)).toEqual(["events", "conversation", "filter", "queue.steer", "deadline", "budgetRun", "delivery", "retry"]);
    expect(bindingSentences(agent, words)[2]?.with).toEqual({ field: "data.severity", values: "high / 1" });
  });

  it("says that an agent without events must be named", () => {
    const named = { ...agent, events: [], scope: anywhere, filters: {}, budget: { run_usd: null, day_usd: null }, delivery: null, built_in: true };
    expect(keys(named)).toEqual(["named", "queue.steer", "deadline", "noDelivery", "retry"]);
  });

  it("says that a built-in agent comes after configured ones", () => {
    expect(keys({ ...agent, scope: anywhere, built_in: true })).toEqual(expect.arrayContaining(["everywhere", "builtIn"]));
  });
});

describe("words of the host", () => {
  it("are known or left out", () => {
    expect(whySay("filter:data.x")).toEqual({ key: "agents.why.filter", with: { field: "data.x" } });
    expect(whySay("scope.bot")).toEqual({ key: "agents.why.scope.bot" });
    expect(whySay("of_a_newer_host")).toBeUndefined();
  });

  it("explain the sandbox of a runner", () => {
    expect(isolationSay("landlock:7")).toEqual({ key: "agents.runners.isolation.landlock", with: { version: "7" } });
    expect(isolationSay("off").key).toBe("agents.runners.isolation.off");
    expect(isolationSay("landlock:7+view+seccomp").with).toEqual({ version: "7" });
    expect(isolationSay("view+seccomp").key).toBe("agents.runners.isolation.other");
    expect(isolationSay(null).key).toBe("agents.runners.isolation.none");
  });
});
