// A question with fields and buttons; read-only once it is answered or expired.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { get, path, post, type Page } from "@/api/client";
import type { Interaction, InteractionAction, InteractionField, InteractionRequest } from "@/api/types";
import { useT } from "@/i18n";
import { Button, Field, Icon, Input, Select, Switch, Textarea, useToast } from "@/ui";
import { useChat } from "./chat-context";
import type { InteractionEntry } from "./entry";
import { draftOf, missing, valuesOf, type Draft } from "./interaction";
import styles from "./interaction.module.css";

export function InteractionView({ entry }: { entry: InteractionEntry }) {
  const t = useT();
  const { request, runId } = entry;
  const queries = useQueryClient();
  const { answered } = useChat();
  const toast = useToast();
  const key = ["interactions", runId];
  const state = useQuery({ queryKey: key, queryFn: ({ signal }) => get<Page<Interaction>>(path("/v1/runs/{}/interactions", runId), {}, signal), refetchInterval: 60_000 });
  const stored = state.data?.items.find((one) => one.interaction_id === request.interaction_id);
  const [draft, setDraft] = useState(() => draftOf(request));
  const [busy, setBusy] = useState<string | null>(null);
  const [asked, setAsked] = useState(false);
  const open = stored?.status === "pending";
  const empty = asked ? missing(request, draft) : [];

  const submit = async (action: string | null) => {
    setAsked(true);
    if (missing(request, draft).length > 0) return;
    setBusy(action ?? "");
    try {
      const answer = { interaction_id: request.interaction_id, action_id: action, values: valuesOf(request, draft) };
      await post(path("/v1/runs/{}/interactions", runId), answer);
      answered(runId, answer);
    } catch (error) {
      toast(error instanceof Error ? error.message : t("chat.formFailed"), "bad");
    }
    await queries.invalidateQueries({ queryKey: key });
    setBusy(null);
  };

  return (
    <section className={styles["form"]} data-kind="interaction" aria-label={request.title}>
      <header className={styles["head"]}>
        <Icon name="approvals" size={20} />
        <div>
          <strong>{request.title}</strong>
          {request.description && <p>{request.description}</p>}
        </div>
      </header>
      <fieldset className={styles["fields"]} disabled={!open}>
        {(request.fields ?? []).map((field) => (
          <FormField key={field.id} field={field} value={draft[field.id] ?? ""} {...(empty.includes(field.id) ? { error: t("chat.formRequired") } : {})} onChange={(value) => setDraft((now) => ({ ...now, [field.id]: value }))} />
        ))}
      </fieldset>
      <footer className={styles["foot"]}>
        {open ? <Buttons request={request} busy={busy} onPress={(action) => void submit(action)} /> : <Outcome stored={stored} />}
      </footer>
    </section>
  );
}

const variants = { default: "secondary", primary: "primary", danger: "danger" } as const;

function Buttons({ request, busy, onPress }: { request: InteractionRequest; busy: string | null; onPress: (action: string | null) => void }) {
  const t = useT();
  const actions = request.actions ?? [];
  if (actions.length === 0) return <Button variant="primary" busy={busy !== null} onClick={() => onPress(null)}>{t("chat.formSend")}</Button>;
  return actions.map((action: InteractionAction) => (
    <Button key={action.id} variant={variants[action.style ?? "default"]} busy={busy === action.id} disabled={busy !== null} onClick={() => onPress(action.id)}>
      {action.label}
    </Button>
  ));
}

function Outcome({ stored }: { stored: Interaction | undefined }) {
  const t = useT();
  if (!stored) return <span className="muted">{t("chat.formUnknown")}</span>;
  const action = stored.request.actions?.find((one) => one.id === stored.answer?.action_id);
  const text = stored.status === "expired" ? t("chat.formExpired") : action ? t("chat.formAnsweredWith", { action: action.label }) : t("chat.formAnswered");
  return <span className="muted">{text}</span>;
}

export function FormField({ field, value, error, onChange }: { field: InteractionField; value: Draft[string]; error?: string; onChange: (value: Draft[string]) => void }) {
  const label = field.required ? `${field.label} *` : field.label;
  const options = (field.options ?? []).map((option) => ({ value: option.value, label: option.label }));
  return (
    <Field label={label} {...(error === undefined ? {} : { error })}>
      {(props) => {
        if (typeof value === "boolean") return <Switch id={props.id} checked={value} onChange={onChange} />;
        if (Array.isArray(value)) {
          return (
            <div className={styles["choices"]} id={props.id}>
              {options.map((option) => (
                <label key={option.value}>
                  <input type="checkbox" checked={value.includes(option.value)} onChange={(event) => onChange(event.target.checked ? [...value, option.value] : value.filter((one) => one !== option.value))} />
                  {option.label}
                </label>
              ))}
            </div>
          );
        }
        if (field.type === "select") return <Select {...props} value={value} options={[{ value: "", label: "" }, ...options]} onChange={onChange} />;
        const placeholder = field.placeholder ?? "";
        if (field.type === "textarea") return <Textarea {...props} rows={3} value={value} placeholder={placeholder} onChange={(event) => onChange(event.target.value)} />;
        return <Input {...props} inputMode={field.type === "number" ? "decimal" : "text"} value={value} placeholder={placeholder} onChange={(event) => onChange(event.target.value)} />;
      }}
    </Field>
  );
}
