// Every error code of the host has a text in both languages.

import { describe, expect, it } from "vitest";
import { translate, type Language } from "@/i18n";
import * as en from "@/i18n/en";
import * as zh from "@/i18n/zh";
import { call, grant } from "./fixture";
import { actOf, explainFailure, explainRefusal, explainTool } from "./explain";
import { said } from "./say";

const LANGUAGES: Language[] = ["en", "zh"];
const FAILED = [
  "cancelled", "deadline_exceeded", "host.interrupted", "runner.no_terminal", "runner.crashed", "runner.unavailable", "runner.protocol_error",
  "runner.overflow", "runner.error", "budget_exceeded", "loop.max_rounds", "limit.tokens", "unauthorized", "not_found", "invalid_argument",
  "payload_too_large", "rate_limited", "runtime_error",
];
const METHODS = [
  "models.invoke", "models.count_tokens", "models.stream", "models.rerank", "models.embed", "tools.get_detail", "tools.search", "tools.call",
  "knowledge.list", "knowledge.retrieve", "history.page", "history.search", "events.get", "events.page", "artifacts.metadata", "artifacts.read_range",
  "artifacts.open_stream", "artifacts.create", "artifacts.begin", "artifacts.append", "artifacts.commit", "state.get", "state.set", "state.delete", "state.list", "storage.get", "storage.set", "storage.delete",
  "storage.list", "platform.request_action", "steering.pull",
];

function words(language: Language, text: Parameters<typeof said>[1]): string {
  return said((key, values) => translate(language, key, values), text);
}

describe.each(LANGUAGES)("words in %s", (language) => {
  it.each(FAILED)("explain the code %s and say what to do", (code) => {
    const { what, todo, known } = explainFailure(code, "office");
    expect(known).toBe(true);
    for (const text of [what, todo]) {
      expect(words(language, text)).not.toMatch(/^runs\.|[{}]/);
    }
  });

  it.each(METHODS)("say what %s does", (method) => {
    expect(words(language, actOf(method))).not.toMatch(/^runs\.|[{}.]/);
  });
});

describe("codes of others", () => {
  it("keep the runner's code and the method's name", () => {
    expect(words("en", explainFailure("acme.no_voice", "office").what)).toContain("acme.no_voice");
    expect(words("en", actOf("odd.method"))).toContain("odd.method");
    expect(words("en", explainTool({ code: "dice.lost" }, "roll", "office").what)).toContain("dice.lost");
  });
});

describe("explainRefusal", () => {
  it("distinguishes a missing request from a missing grant", () => {
    const refused = (method: string) => explainRefusal(call(method, "000", { code: "unauthorized" }), grant).what.key;
    expect(refused("history.search")).toBe("runs.refused.asked.what");
    expect(refused("models.embed")).toBe("runs.refused.asked.what");
    expect(refused("models.stream")).toBe("runs.refused.granted.what");
    expect(refused("events.get")).toBe("runs.refused.granted.what");
    expect(refused("storage.get")).toBe("runs.refused.granted.what");
  });

  it("names the key of the grant that would allow it", () => {
    const { todo } = explainRefusal(call("events.get", "000", { code: "unauthorized" }), grant);
    expect(words("en", todo)).toContain("`event_log` in [agents.office.grant]");
  });

  it("stays general if the grant is unknown", () => {
    expect(explainRefusal(call("state.set", "000", { code: "unauthorized" }), null).what.key).toBe("runs.code.unauthorized.what");
  });
});

describe("translations", () => {
  // Plural forms exist in English only.
  const holes = (text: string) => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort();

  it.each(["runs", "agents"] as const)("of %s name the same values", (area) => {
    for (const [key, text] of Object.entries(en[area])) {
      expect([key, holes(zh[area][key as keyof (typeof zh)[typeof area]])]).toEqual([key, holes(text)]);
    }
  });
});
