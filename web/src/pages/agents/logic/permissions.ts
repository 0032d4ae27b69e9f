// Permissions as sentences: of a grant (what a run may do) and of a manifest (what a runner requests).

import type { ApprovalMode, Grant, Permissions, Reach } from "@/api/types";
import { say, type Say } from "@/pages/runs/logic/say";

export type Level = "yes" | "ask" | "no";

export interface Right {
  level: Level;
  text: Say;
  /** Names in the sentence: models, tools, actions. */
  names: string[];
}

function right(level: Level, text: Say, names: string[] = []): Right {
  return { level, text, names };
}

/** What a run with this grant may do, needs approval for, and may not do. */
export function rightsOf(grant: Grant): Right[] {
  return [
    ...facts(grant), ...models(grant), ...tools(grant), ...knowledge(grant), ...memory(grant), ...actions(grant),
    ...(grant.steering ? [right("yes", say("agents.right.steering"))] : []),
  ];
}

function facts(grant: Grant): Right[] {
  const area = (name: "history" | "events" | "artifacts"): Right => {
    const { reach, operations } = grant[name];
    const can: Reach = operations.length === 0 ? "none" : reach;
    return right(can === "none" ? "no" : "yes", say(`agents.right.${name}.${can}`));
  };
  const made = grant.artifacts.reach !== "none" && grant.artifacts.operations.includes("create");
  return [area("history"), area("events"), area("artifacts"), ...(made ? [right("yes", say("agents.right.artifacts.create"))] : [])];
}

function models({ models: { names, operations } }: Grant): Right[] {
  const usable = names.length > 0 && operations.length > 0;
  return [usable ? right("yes", say("agents.right.models", { count: names.length }), names) : right("no", say("agents.right.models.none"))];
}

/** The host's own tools are shown by their methods and skills. */
const OWN = ["project_cli", "skill.read"];

function tools(grant: Grant): Right[] {
  const rights: Right[] = [];
  const canCall = grant.tools.operations.includes("call");
  const names = grant.tools.names.filter((name) => !OWN.includes(name));
  if (canCall && names.length > 0) rights.push(right("yes", say("agents.right.tools", { count: names.length }), names));
  if (canCall && grant.methods.length > 0) rights.push(right("yes", say("agents.right.methods", { count: grant.methods.length }), grant.methods));
  if (grant.skills.length > 0) rights.push(right("yes", say("agents.right.skills", { count: grant.skills.length }), grant.skills));
  if (rights.length === 0) return [right("no", say("agents.right.tools.none"))];
  for (const [risk, level] of sorted(grant.risks)) {
    if (level !== "always") rights.push(right(level === "ask" ? "ask" : "no", say(`agents.right.risk.${level}.${risk}`)));
  }
  return rights;
}

const RISKS = ["read", "write", "destructive", "external"] as const;

function sorted(risks: Grant["risks"]): [(typeof RISKS)[number], ApprovalMode][] {
  return RISKS.flatMap((risk) => {
    const level = risks[risk];
    return level === undefined ? [] : [[risk, level] as [(typeof RISKS)[number], ApprovalMode]];
  });
}

function knowledge({ knowledge: { names, operations } }: Grant): Right[] {
  return names.length > 0 && operations.length > 0 ? [right("yes", say("agents.right.knowledge", { count: names.length }), names)] : [];
}

const SCOPES = ["conversation", "actor", "subject", "runner", "binding"] as const;
const AREAS = ["plugin", "binding", "workspace"] as const;

function memory(grant: Grant): Right[] {
  const state = SCOPES.filter((scope) => grant.state.includes(scope)).map((scope) => right("yes", say(`agents.right.state.${scope}`)));
  const storage = AREAS.filter((area) => grant.storage.includes(area)).map((area) => right("yes", say(`agents.right.storage.${area}`)));
  return [...(state.length === 0 ? [right("no", say("agents.right.state.none"))] : state), ...storage];
}

const ACTIONS = ["message.send", "message.edit", "message.delete", "message.react"] as const;

/** The verb phrase of an action, as in “may …”. */
export function actionSay(action: string): Say {
  const known = ACTIONS.find((one) => one === action);
  return known === undefined ? say("agents.action.other", { action }) : say(`agents.action.${known}`);
}

function actions(grant: Grant): Right[] {
  const granted = Object.entries(grant.actions).filter(([, level]) => level !== "never");
  if (granted.length === 0) return [right("no", say("agents.right.actions.none"))];
  return granted.map(([action, level]) =>
    right(level === "ask" ? "ask" : "yes", say(level === "ask" ? "agents.right.actions.ask" : "agents.right.actions.always", { action: actionSay(action) })),
  );
}

const PERMISSIONS = ["models", "tools", "knowledge_bases", "history", "events", "artifacts", "storage", "files", "platform_api"] as const;

/** The permissions in a manifest, granted or not. */
export function requestedPermissions(permissions: Permissions | undefined): Right[] {
  return PERMISSIONS.flatMap((area) => {
    const operations = permissions?.[area] ?? [];
    return operations.length === 0 ? [] : [right("ask", say(`agents.asks.${area}`), operations)];
  });
}
