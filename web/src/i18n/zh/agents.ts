// Chinese texts of agents.
import type { agents as en } from "../en/agents";
import type { SameKeys } from "../texts";

export const agents: SameKeys<typeof en> = {
  title: "智能体",
};
