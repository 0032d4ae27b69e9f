// English texts of agents.
export const agents = {
  title: "Agents",
} as const;
