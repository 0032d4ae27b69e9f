// The agent of the next message: chosen here, else the conversation's, else the last one chosen.
import { useState } from "react";
import type { Agent } from "@/api/types";
import { agentOf, firstChoice } from "./first-choice";

const STORED = "greenroom.agent";

export function useAgentChoice(agents: Agent[], recent: string[]): [Agent, (name: string) => void] {
  const [chosen, setChosen] = useState<string | null>(null);
  const choose = (name: string) => {
    localStorage.setItem(STORED, name);
    setChosen(name);
  };
  const wanted = [chosen, agentOf(recent, agents), localStorage.getItem(STORED)];
  const named = wanted.map((name) => agents.find((agent) => agent.name === name)).find((agent) => agent !== undefined);
  return [named ?? firstChoice(agents), choose];
}
