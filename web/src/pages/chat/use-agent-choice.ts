// Which agent is talked to: the one chosen here, else that of the conversation, else the last one chosen anywhere.
import { useState } from "react";
import type { Agent } from "@/api/types";

const STORED = "greenroom.agent";

export function useAgentChoice(agents: Agent[], ofConversation: string | null): [Agent, (name: string) => void] {
  const [chosen, setChosen] = useState<string | null>(null);
  const choose = (name: string) => {
    localStorage.setItem(STORED, name);
    setChosen(name);
  };
  const wanted = [chosen, ofConversation, localStorage.getItem(STORED)];
  const named = wanted.map((name) => agents.find((agent) => agent.name === name)).find((agent) => agent !== undefined);
  const talks = agents.find((agent) => agent.runner_available && agent.events.length > 0);
  return [named ?? talks ?? (agents[0] as Agent), choose];
}
