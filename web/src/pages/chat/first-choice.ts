// The default agent.
import type { Agent } from "@/api/types";

const MESSAGES = new Set(["*", "message.*", "message.received"]);
const SCOPE_PARTS = ["actor", "conversation", "bot"] as const;

/** A configured agent that handles messages in any scope, else such a built-in one, else one with an available runner. */
export function firstChoice(agents: Agent[]): Agent {
  const open = agents.filter((agent) => agent.runner_available && takesMessages(agent) && isEverywhere(agent));
  return open.find((agent) => !agent.built_in) ?? open[0] ?? agents.find((agent) => agent.runner_available) ?? (agents[0] as Agent);
}

function takesMessages(agent: Agent): boolean {
  return agent.events.some((event) => MESSAGES.has(event)) && Object.keys(agent.filters).length === 0;
}

function isEverywhere(agent: Agent): boolean {
  return SCOPE_PARTS.every((part) => agent.scope[part] === null);
}
