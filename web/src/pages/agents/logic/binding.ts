// A binding in plain words: which events an agent takes, from where, in which order, and for how long.

import type { Json } from "@/api/types";
import type { AgentView } from "@/api/types-agents";
import { say, type Say } from "@/pages/runs/logic/say";

/** The parts of an agent that say what it takes; lists of agents have these alone. */
export type Binding = Pick<AgentView, "events" | "scope" | "filters" | "queue" | "deadline_s" | "on_interrupt" | "delivery" | "built_in"> &
  Partial<Pick<AgentView, "budget">>;

/** Texts that Intl makes; the logic itself knows no language. */
export interface Words {
  duration: (ms: number) => string;
  money: (amount: number) => string;
}

const SCOPES = ["actor", "conversation", "bot", "workspace"] as const;

export function bindingSentences(agent: Binding, words: Words): Say[] {
  const takes = agent.events.length === 0 ? say("agents.bind.named") : say("agents.bind.events", { events: agent.events.join(", ") });
  const where = scopeSentences(agent);
  const filters = Object.entries(agent.filters).map(([field, values]) => say("agents.bind.filter", { field, values: valuesText(values) }));
  const budget = [
    ...(agent.budget?.run_usd == null ? [] : [say("agents.bind.budgetRun", { amount: words.money(agent.budget.run_usd) })]),
    ...(agent.budget?.day_usd == null ? [] : [say("agents.bind.budgetDay", { amount: words.money(agent.budget.day_usd) })]),
  ];
  return [
    takes, ...(agent.events.length === 0 ? [] : where.length === 0 ? [say("agents.bind.everywhere")] : where), ...filters,
    ...(agent.built_in && agent.events.length > 0 ? [say("agents.bind.builtIn")] : []),
    say(`agents.bind.queue.${agent.queue}`), say("agents.bind.deadline", { time: words.duration(agent.deadline_s * 1_000) }), ...budget,
    agent.delivery === null ? say("agents.bind.noDelivery") : say("agents.bind.delivery", { surface: agent.delivery }),
    say(agent.on_interrupt === "retry" ? "agents.bind.retry" : "agents.bind.fail"),
  ];
}

export function scopeSentences(agent: Pick<Binding, "scope">): Say[] {
  return SCOPES.flatMap((part) => {
    const id = agent.scope[part];
    return typeof id === "string" ? [say(`agents.bind.${part}`, { id })] : [];
  });
}

function valuesText(values: Json): string {
  const some = Array.isArray(values) ? values : [values];
  return some.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(" / ");
}

const WHYS = ["ok", "named", "not_named", "only_when_named", "event_type", "scope.workspace", "scope.bot", "scope.conversation", "scope.actor", "less_narrow", "tie"] as const;

/** Why an agent would take an event, or would not. */
export function whySay(why: string): Say | undefined {
  if (why.startsWith("filter:")) return say("agents.why.filter", { field: why.slice("filter:".length) });
  const known = WHYS.find((one) => one === why);
  return known === undefined ? undefined : say(`agents.why.${known}`);
}

/** What an isolation means: `landlock:7`, `off`, `unavailable`, `remote`. */
export function isolationSay(isolation: string | null | undefined): Say {
  if (isolation === null || isolation === undefined || isolation === "") return say("agents.runners.isolation.none");
  if (isolation === "off" || isolation === "unavailable" || isolation === "remote") return say(`agents.runners.isolation.${isolation}`);
  const landlock = /^landlock:(\d+)$/.exec(isolation);
  return landlock ? say("agents.runners.isolation.landlock", { version: landlock[1] ?? "" }) : say("agents.runners.isolation.other", { isolation });
}
