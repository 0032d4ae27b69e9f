// The settings of an agent as a form made from its runner's schema; saved by the host, or shown as configuration.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { ApiError, path, put } from "@/api/client";
import type { JsonObject } from "@/api/types";
import type { AgentView, FormItem } from "@/api/types-agents";
import { useLanguage, useT } from "@/i18n";
import { said } from "@/pages/runs/logic/say";
import { Button, Card, Empty, useToast } from "@/ui";
import { Code } from "@/ui/code";
import styles from "./agents.module.css";
import { checked, draftOf, fieldsOf, type Draft } from "./logic/form";
import { agentToml, configToml } from "./logic/toml";
import { SettingField } from "./setting-field";

export function SettingsForm({ agent, schema }: { agent: AgentView; schema: FormItem[] }) {
  const { t, language } = useLanguage();
  const toast = useToast();
  const queries = useQueryClient();
  const fields = useMemo(() => fieldsOf(schema, language, agent.grant?.models.names ?? agent.policy.models), [schema, language, agent]);
  const filled = useMemo(() => draftOf(fields, agent.config), [fields, agent.config]);
  const [draft, setDraft] = useState<Draft>(filled);
  const [shows, setShows] = useState(false);
  const { config, problems } = useMemo(() => checked(fields, draft, agent.config), [fields, draft, agent.config]);
  const [refused, setRefused] = useState<Record<string, string>>({});
  const isChanged = fields.some((field) => draft[field.name] !== filled[field.name]);
  const wrong = Object.keys(problems).length;
  const writable = agent.config_writable;
  const save = useMutation({
    mutationFn: () => put<AgentView>(path("/v1/agents/{}/config", agent.name), config),
    onSuccess: (after) => {
      queries.setQueryData(["agent", agent.name], after);
      setDraft(draftOf(fields, after.config));
      setRefused({});
      toast(t("agents.form.saved"));
    },
    onError: (error) => {
      setRefused(problemsOf(error));
      if (error instanceof ApiError && [404, 405, 409].includes(error.status)) setShows(true);
      toast(t("agents.form.failed", { reason: error.message }), "bad");
    },
  });
  if (fields.length === 0) return <Card><Empty icon="edit" title={t("agents.form.none")} /></Card>;
  const canSave = writable?.writable === true;
  return (
    <form className="stack" onSubmit={(event) => (event.preventDefault(), canSave ? save.mutate() : setShows(true))}>
      <Card>
        <div className={styles["form"]}>
          {fields.map((field) => {
            const problem = problems[field.name];
            const error = problem === undefined ? refused[field.name] : said(t, problem);
            return <SettingField key={field.name} field={field} value={draft[field.name] ?? ""} {...(error === undefined ? {} : { error })} onChange={(value) => setDraft((before) => ({ ...before, [field.name]: value }))} />;
          })}
        </div>
        <div className={styles["formFoot"]}>
          {canSave ? (
            <Button type="submit" variant="primary" busy={save.isPending} disabled={!isChanged || wrong > 0}>{t("agents.form.save")}</Button>
          ) : (
            <Button type="submit" variant="primary" disabled={wrong > 0}>{t("agents.form.show")}</Button>
          )}
          <Button disabled={!isChanged} onClick={() => (setDraft(filled), setRefused({}))}>{t("agents.form.reset")}</Button>
          {canSave && <Button variant="quiet" onClick={() => setShows(!shows)}>{t("agents.form.show")}</Button>}
          <span className={wrong > 0 ? styles["wrong"] : "muted"} role="status">
            {wrong > 0 ? t("agents.form.wrong", { count: wrong }) : isChanged ? t("agents.form.changed") : ""}
          </span>
        </div>
      </Card>
      {shows && <AsToml agent={agent} config={config} />}
    </form>
  );
}

/** Problems that the host found, by field. */
function problemsOf(error: unknown): Record<string, string> {
  const list = error instanceof ApiError ? error.details["problems"] : undefined;
  if (!Array.isArray(list)) return {};
  return Object.fromEntries((list as { field?: unknown; message?: unknown }[]).map((one) => [String(one.field ?? ""), String(one.message ?? "")]));
}

const REASONS = ["built_in", "no_file", "not_supported"] as const;

function AsToml({ agent, config }: { agent: AgentView; config: JsonObject }) {
  const t = useT();
  const reason = REASONS.find((one) => one === agent.config_writable?.reason);
  const toml = agent.built_in ? agentToml(`my-${agent.name}`, agent, config) : configToml(agent.name, config);
  return (
    <Card title={t("agents.form.toml")}>
      <div className="stack">
        <p className="muted">{reason === undefined ? t("agents.form.tomlHint") : t(`agents.form.readOnly.${reason}`)}</p>
        <Code text={toml} language="toml" />
      </div>
    </Card>
  );
}
