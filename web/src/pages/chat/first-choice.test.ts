// The default agent of a new conversation, and the agent of one that has messages.
import { expect, test } from "vitest";
import type { Agent } from "@/api/types";
import { agentOf, firstChoice } from "./first-choice";

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

test("an agent for slash commands gets no other message by default", () => {
  const commands = agent("weather", { commands: ["weather"] });
  expect(firstChoice([commands, agent("assistant", { built_in: true })]).name).toBe("assistant");
  expect(firstChoice([commands, agent("named", { events: [] })]).name).toBe("named");
  expect(firstChoice([commands]).name).toBe("weather");
});

test("a conversation goes on with its newest agent that is not for slash commands", () => {
  const agents = [agent("weather", { commands: ["weather"] }), agent("helper"), agent("other")];
  expect(agentOf(["weather", "helper", "other"], agents)).toBe("helper");
  expect(agentOf(["removed", "other"], agents)).toBe("other");
  expect(agentOf(["weather"], agents)).toBeNull();
});
