// A binding as sentences: events, scope, queue and limits.

import type { AgentDetail, Json } from "@/api/types";
import { say, type Say } from "@/pages/runs/logic/say";

/** The fields of an agent that describe its binding, also in lists. */
export type Binding = Pick<AgentDetail, "events" | "scope" | "filters" | "queue" | "deadline_s" | "on_interrupt" | "delivery" | "built_in"> &
  Partial<Pick<AgentDetail, "budget">>;

/** Formatters of the current language. */
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

const WHYS = ["ok", "named", "not_named", "only_when_named", "event_type", "command", "scope.workspace", "scope.bot", "scope.conversation", "scope.actor", "less_narrow", "tie"] as const;

/** Why an agent matches an event, or does not. */
export function whySay(why: string): Say | undefined {
  if (why.startsWith("filter:")) return say("agents.why.filter", { field: why.slice("filter:".length) });
  const known = WHYS.find((one) => one === why);
  return known === undefined ? undefined : say(`agents.why.${known}`);
}

/** The text of an isolation: `landlock:7`, `off`, `unavailable`, `remote`. */
export function isolationSay(isolation: string | null | undefined): Say {
  if (isolation === null || isolation === undefined || isolation === "") return say("agents.runners.isolation.none");
  if (isolation === "off" || isolation === "unavailable" || isolation === "remote") return say(`agents.runners.isolation.${isolation}`);
  const landlock = /^landlock:(\d+)(?:\+|$)/.exec(isolation);
  return landlock ? say("agents.runners.isolation.landlock", { version: landlock[1] ?? "" }) : say("agents.runners.isolation.other", { isolation });
}
