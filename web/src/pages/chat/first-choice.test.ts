// The default agent of a new conversation.
import { expect, test } from "vitest";
import type { Agent } from "@/api/types";
import { firstChoice } from "./first-choice";

const ANYWHERE = { workspace: null, bot: null, conversation: null, actor: null };

function agent(name: string, changes: Partial<Agent> = {}): Agent {
  return {
    name,
    runner_id: "builtin:test",
    runner_available: true,
    built_in: false,
    events: ["message.received"],
    commands: [],
    filters: {},
    scope: ANYWHERE,
    queue: "serial",
    on_interrupt: "fail",
    deadline_s: 60,
    delivery: null,
    ...changes,
  };
}

test("a configured agent comes before a built-in one", () => {
  expect(firstChoice([agent("assistant", { built_in: true }), agent("own")]).name).toBe("own");
});

test("an agent with a scope is not the default", () => {
  const agents = [agent("vip", { scope: { ...ANYWHERE, conversation: "vip" } }), agent("assistant", { built_in: true })];
  expect(firstChoice(agents).name).toBe("assistant");
});

test("agents with other events, with filters or without a runner are skipped", () => {
  const agents = [
    agent("alerts", { events: ["alert.*"] }),
    agent("loud", { filters: { "data.severity": ["high"] } }),
    agent("broken", { runner_available: false }),
    agent("assistant", { built_in: true, events: ["*"] }),
  ];
  expect(firstChoice(agents).name).toBe("assistant");
});

test("without a match, the first agent with a runner is chosen", () => {
  expect(firstChoice([agent("broken", { runner_available: false }), agent("named", { events: [] })]).name).toBe("named");
  expect(firstChoice([agent("broken", { runner_available: false })]).name).toBe("broken");
});
