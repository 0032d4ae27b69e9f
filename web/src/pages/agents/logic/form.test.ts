// Forms built from a runner's schema, and their TOML.

import { describe, expect, it } from "vitest";
import type { AgentDetail, FormItem } from "@/api/types";
import { checked, draftOf, fieldsOf, localText } from "./form";
import { agentToml, configToml } from "./toml";

const schema: FormItem[] = [
  { name: "prompt", label: { en_US: "System prompt", zh_Hans: "系统提示词" }, type: "text", default: "Be brief" },
  { name: "model", label: "Model", type: "model-selector", default: "" },
  { name: "fallback_models", label: "Fallback", type: "array[string]", default: [] },
  { name: "temperature", label: "Temperature", type: "float" },
  { name: "rounds", label: "Rounds", type: "integer", default: 8, minimum: 1, maximum: 20 },
  { name: "commands", label: "Commands", type: "boolean", default: true },
  { name: "options", label: "Options", type: "json", default: {} },
  { name: "reasoning", label: "Reasoning", type: "select", default: "low", options: [{ name: "low", label: { en_US: "Low", zh_Hans: "低" } }, { name: "high", label: "High" }] },
  { name: "api", label: "API", type: "string", required: true },
  { name: "odd", label: "Odd", type: "colour-wheel" },
];
const fields = fieldsOf(schema, "zh", ["main", "spare"]);

describe("fieldsOf", () => {
  it("uses the chosen language and has a control for every type", () => {
    expect(fields.map((field) => `${field.label} ${field.control}`)).toEqual([
      "系统提示词 lines", "Model model", "Fallback list", "Temperature number", "Rounds whole", "Commands switch", "Options json", "Reasoning choice", "API line", "Odd line",
    ]);
    expect(fields[1]?.options.map((option) => option.value)).toEqual(["main", "spare"]);
    expect(fields[7]?.options[0]).toEqual({ value: "low", label: "低" });
  });

  it("falls back to English, then to any language", () => {
    expect(localText({ en_US: "Tone" }, "zh")).toBe("Tone");
    expect(localText({ de_DE: "Ton" }, "zh")).toBe("Ton");
    expect(localText({ zh_Hans: null, en_US: "Tone" }, "zh")).toBe("Tone");
  });
});

describe("checked", () => {
  it("returns the settings it was filled with", () => {
    const config = { prompt: "Hi\nthere", fallback_models: ["spare"], rounds: 4, commands: false, options: { a: 1 }, api: "x", extra: true };
    expect(checked(fields, draftOf(fields, config), config)).toEqual({ config, problems: {} });
  });

  it("omits empty values, so that the default applies", () => {
    expect(checked(fields, { ...draftOf(fields, {}), api: "x" }, {})).toEqual({ config: { api: "x" }, problems: {} });
  });

  it("reports the error of each field", () => {
    const draft = { ...draftOf(fields, {}), temperature: "warm", rounds: "2.5", options: "{", reasoning: "max", api: " " };
    const { problems } = checked(fields, draft, {});
    expect(Object.entries(problems).map(([name, text]) => `${name} ${text.key}`)).toEqual([
      "temperature agents.form.number", "rounds agents.form.whole", "options agents.form.json", "reasoning agents.form.choice", "api agents.form.required",
    ]);
    expect(checked(fields, { ...draftOf(fields, {}), rounds: "21" }, {}).problems["rounds"]).toEqual({ key: "agents.form.max", with: { max: 20 } });
  });
});

describe("configToml", () => {
  it("writes every kind of value", () => {
    const toml = configToml("my agent", {
      prompt: 'Say "hi"\nand\\or\tbye', model: "main", list: ["a", "b"], rounds: 4, rate: 0.5, tiny: 1e-7, on: true, nothing: null, options: { "top p": 0.9, deep: { x: ["y\nz"] } },
    });
    expect(toml).toBe(
      [
        '[agents."my agent".config]', 'prompt = """', 'Say \\"hi\\"', 'and\\\\or\\tbye"""', 'model = "main"', 'list = ["a", "b"]', "rounds = 4", "rate = 0.5", "tiny = 1.0e-7", "on = true",
        'options = { "top p" = 0.9, deep = { x = ["y\\nz"] } }', "",
      ].join("\n"),
    );
  });
});

describe("agentToml", () => {
  it("writes a new agent with the same grant", () => {
    const policy = {
      models: ["default"], tools: [], knowledge: [], history: "conversation", event_log: "conversation", artifacts: "conversation", state: [], storage: [],
      actions: { "message.send": "ask" }, files: [], skills: [], modules: ["calendar.*"], risks: {},
    } as const;
    const from = { runner_id: "plugin:greenroom/local-agent/default", policy: structuredClone(policy) as unknown as AgentDetail["policy"] };
    expect(agentToml("my-assistant", from, { max_tool_rounds: 3 })).toBe(
      [
        "[agents.my-assistant]", 'runner = "plugin:greenroom/local-agent/default"', "", "[agents.my-assistant.grant]", 'models = ["default"]', 'modules = ["calendar.*"]',
        'actions = { "message.send" = "ask" }', "", "[agents.my-assistant.config]", "max_tool_rounds = 3", "",
      ].join("\n"),
    );
  });
});
