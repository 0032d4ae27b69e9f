// Permissions as sentences.

import { describe, expect, it } from "vitest";
import { grant } from "@/pages/runs/logic/fixture";
import { requestedPermissions, rightsOf } from "./permissions";

const words = (rights: ReturnType<typeof rightsOf>) => rights.map((one) => `${one.level} ${one.text.key.slice("agents.".length)}`);

describe("rightsOf", () => {
  it("says what a run may do, needs approval for and may not do", () => {
    expect(words(rightsOf(grant))).toEqual([
      "yes right.history.conversation", "no right.events.none", "yes right.artifacts.conversation", "yes right.models",
      "yes right.methods", "ask right.risk.ask.destructive", "yes right.state.conversation", "ask right.actions.ask",
    ]);
  });

  it("counts an area without operations as not granted", () => {
    const rights = rightsOf({ ...grant, history: { reach: "workspace", operations: [] }, models: { names: ["main"], operations: [] } });
    expect(words(rights)).toContain("no right.history.none");
    expect(words(rights)).toContain("no right.models.none");
  });

  it("says that files may be created and risky calls are refused", () => {
    const rights = rightsOf({
      ...grant, artifacts: { reach: "conversation", operations: ["create"] }, risks: { external: "never", write: "always" }, actions: { "message.send": "always", x: "never" },
    });
    expect(words(rights)).toEqual(expect.arrayContaining(["yes right.artifacts.create", "no right.risk.never.external", "yes right.actions.always"]));
    expect(words(rights).filter((word) => word.includes("actions"))).toHaveLength(1);
  });

  it("does not list the host's own tools as tools", () => {
    const methods = rightsOf(grant).find((one) => one.text.key === "agents.right.methods");
    expect(methods?.names).toEqual(["calendar.read"]);
    expect(rightsOf(grant).some((one) => one.text.key === "agents.right.tools")).toBe(false);
  });
});

describe("requestedPermissions", () => {
  it("names the permissions that a manifest requests", () => {
    expect(requestedPermissions({ models: ["invoke"], history: [], platform_api: ["message.send"] })).toEqual([
      { level: "ask", text: { key: "agents.asks.models" }, names: ["invoke"] },
      { level: "ask", text: { key: "agents.asks.platform_api" }, names: ["message.send"] },
    ]);
    expect(requestedPermissions(undefined)).toEqual([]);
  });
});
