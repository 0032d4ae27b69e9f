// The default agent, and the agent of a conversation.
import type { Agent } from "@/api/types";

const MESSAGES = new Set(["*", "message.*", "message.received"]);
const SCOPE_PARTS = ["actor", "conversation", "bot"] as const;

/** A configured agent that handles messages in any scope, else such a built-in one, else one with an available runner. */
export function firstChoice(agents: Agent[]): Agent {
  const open = agents.filter((agent) => agent.runner_available && takesMessages(agent) && isEverywhere(agent));
  const ready = agents.filter((agent) => agent.runner_available);
  const others = ready.find((agent) => !isForCommands(agent)) ?? ready[0];
  return open.find((agent) => !agent.built_in) ?? open[0] ?? others ?? (agents[0] as Agent);
}

/** The newest of a conversation's agents that the next message can go to. */
export function agentOf(recent: string[], agents: Agent[]): string | null {
  return recent.find((name) => agents.some((agent) => agent.name === name && !isForCommands(agent))) ?? null;
}

function takesMessages(agent: Agent): boolean {
  return agent.events.some((event) => MESSAGES.has(event)) && Object.keys(agent.filters).length === 0 && !isForCommands(agent);
}

/** An agent for slash commands takes those, not the messages around them. */
function isForCommands(agent: Agent): boolean {
  return agent.commands.length > 0;
}

function isEverywhere(agent: Agent): boolean {
  return SCOPE_PARTS.every((part) => agent.scope[part] === null);
}
