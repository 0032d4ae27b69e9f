// The agents to chat with. A sender may not read agents, only use its own by name.
import { useQuery } from "@tanstack/react-query";
import { get, type Page } from "@/api/client";
import type { Agent, Session } from "@/api/types";

export function useChatAgents(session: Session | null | undefined) {
  const role = session?.role;
  return useQuery({
    queryKey: ["agents", "chat", role],
    queryFn: () => (role === "sender" ? ofSender(session?.agents) : all()),
    enabled: role !== undefined,
  });
}

async function all(): Promise<Agent[]> {
  return (await get<Page<Agent>>("/v1/agents")).items;
}

async function ofSender(agents: string[] | null | undefined): Promise<Agent[]> {
  return (agents ?? (await everyName())).map(named);
}

async function everyName(): Promise<string[]> {
  return Object.keys((await get<{ agents: Record<string, unknown> }>("/v1/agui/info")).agents);
}

function named(name: string): Agent {
  return {
    name,
    runner_id: "",
    runner_available: true,
    built_in: false,
    events: [],
    commands: [],
    filters: {},
    scope: { workspace: null, bot: null, conversation: null, actor: null },
    queue: "serial",
    on_interrupt: "fail",
    deadline_s: 0,
    delivery: null,
  };
}
