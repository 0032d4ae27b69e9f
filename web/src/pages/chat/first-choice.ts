// Who is talked to unless somebody says otherwise.
import type { Agent } from "@/api/types";

const MESSAGES = new Set(["*", "message.*", "message.received"]);
const PLACES = ["actor", "conversation", "bot"];

/** An agent of one's own that takes messages from everywhere, else a built-in one that does, else one that works. */
export function firstChoice(agents: Agent[]): Agent {
  const open = agents.filter((agent) => agent.runner_available && takesMessages(agent) && isEverywhere(agent));
  return open.find((agent) => !agent.built_in) ?? open[0] ?? agents.find((agent) => agent.runner_available) ?? (agents[0] as Agent);
}

function takesMessages(agent: Agent): boolean {
  return agent.events.some((event) => MESSAGES.has(event)) && Object.keys(agent.filters).length === 0;
}

function isEverywhere(agent: Agent): boolean {
  return PLACES.every((place) => typeof agent.scope[place] !== "string");
}
