// The settings of an agent as a form built from its runner's schema; the result is TOML for the configuration file.
import { useMemo, useState } from "react";
import type { AgentDetail, FormItem, JsonObject } from "@/api/types";
import { useLanguage, useT } from "@/i18n";
import { said } from "@/pages/runs/logic/say";
import { Button, Card, Empty } from "@/ui";
import { Code } from "@/ui/code";
import styles from "./agents.module.css";
import { checked, draftOf, fieldsOf, type Draft } from "./logic/form";
import { agentToml, configToml } from "./logic/toml";
import { SettingField } from "./setting-field";

export function SettingsForm({ agent, schema }: { agent: AgentDetail; schema: FormItem[] }) {
  const { t, language } = useLanguage();
  const fields = useMemo(() => fieldsOf(schema, language, agent.grant?.models.names ?? agent.policy.models), [schema, language, agent]);
  const filled = useMemo(() => draftOf(fields, agent.config), [fields, agent.config]);
  const [draft, setDraft] = useState<Draft>(filled);
  const [shows, setShows] = useState(false);
  const { config, problems } = useMemo(() => checked(fields, draft, agent.config), [fields, draft, agent.config]);
  const isChanged = fields.some((field) => draft[field.name] !== filled[field.name]);
  const wrong = Object.keys(problems).length;
  if (fields.length === 0) return <Card><Empty icon="edit" title={t("agents.form.none")} /></Card>;
  return (
    <form className="stack" onSubmit={(event) => (event.preventDefault(), setShows(true))}>
      <Card>
        <div className={styles["form"]}>
          {fields.map((field) => {
            const problem = problems[field.name];
            return <SettingField key={field.name} field={field} value={draft[field.name] ?? ""} {...(problem === undefined ? {} : { error: said(t, problem) })} onChange={(value) => setDraft((before) => ({ ...before, [field.name]: value }))} />;
          })}
        </div>
        <div className={styles["formFoot"]}>
          <Button type="submit" variant="primary" disabled={wrong > 0}>{t("agents.form.show")}</Button>
          <Button disabled={!isChanged} onClick={() => setDraft(filled)}>{t("agents.form.reset")}</Button>
          <span className={wrong > 0 ? styles["wrong"] : "muted"} role="status">
            {wrong > 0 ? t("agents.form.wrong", { count: wrong }) : isChanged ? t("agents.form.changed") : ""}
          </span>
        </div>
      </Card>
      {shows && <AsToml agent={agent} config={config} />}
    </form>
  );
}

function AsToml({ agent, config }: { agent: AgentDetail; config: JsonObject }) {
  const t = useT();
  const toml = agent.built_in ? agentToml(`my-${agent.name}`, agent, config) : configToml(agent.name, config);
  return (
    <Card title={t("agents.form.toml")}>
      <div className="stack">
        <p className="muted">{agent.built_in ? t("agents.form.tomlBuiltIn") : t("agents.form.tomlHint")}</p>
        <Code text={toml} language="toml" />
      </div>
    </Card>
  );
}
