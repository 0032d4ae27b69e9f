// Dry run: which agent would handle an event, and with which grant. Stores nothing.
import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { post } from "@/api/client";
import type { Agent, BindingTrial, Candidate, JsonObject } from "@/api/types";
import { useT } from "@/i18n";
import { said } from "@/pages/runs/logic/say";
import { reasonOf } from "@/pages/runs/logic/timeline";
import { Badge, Button, Card, ErrorBox, Field, Icon, Input, Select, Textarea } from "@/ui";
import styles from "./agents.module.css";
import { whySay } from "./logic/binding";
import { rightsOf } from "./logic/permissions";
import { Rights } from "./rights";

interface Draft {
  type: string;
  text: string;
  conversation: string;
  actor: string;
  bot: string;
  agent: string;
  data: string;
}

const EMPTY: Draft = { type: "message.received", text: "", conversation: "", actor: "", bot: "", agent: "", data: "" };

export function TryEvent({ agents, agent }: { agents: Agent[]; agent?: string }) {
  const t = useT();
  const [draft, setDraft] = useState<Draft>({ ...EMPTY, agent: agent ?? "" });
  const [more, setMore] = useState(false);
  const data = parsed(draft.data);
  const tried = useMutation({ mutationFn: () => post<BindingTrial>("/v1/bindings/try", eventOf(draft, "value" in data ? data.value : undefined)) });
  const set = (key: keyof Draft) => (value: string) => setDraft((before) => ({ ...before, [key]: value }));
  const types = [...new Set(["message.received", ...agents.flatMap((one) => one.events.filter((event) => !event.includes("*")))])];
  const line = (key: "conversation" | "actor" | "bot" | "text") => (
    <Field label={t(`agents.try.${key}`)}>{(props) => <Input {...props} value={draft[key]} onChange={(event) => set(key)(event.target.value)} />}</Field>
  );
  return (
    <Card title={t("agents.try.title")} className={styles["try"] ?? ""}>
      <form className={styles["tryForm"]} onSubmit={(event) => (event.preventDefault(), tried.mutate())}>
        <p className="muted">{t("agents.try.subtitle")}</p>
        <Field label={t("agents.try.type")}>
          {(props) => (
            <>
              <Input {...props} list="event-types" value={draft.type} onChange={(event) => set("type")(event.target.value)} />
              <datalist id="event-types">{types.map((type) => <option key={type} value={type} />)}</datalist>
            </>
          )}
        </Field>
        {line("conversation")}
        {line("actor")}
        {more && (
          <>
            {line("text")}
            {line("bot")}
            <Field label={t("agents.try.agent")}>
              {(props) => <Select {...props} value={draft.agent} onChange={set("agent")} options={[{ value: "", label: t("agents.try.noAgent") }, ...agents.map((one) => ({ value: one.name, label: one.name }))]} />}
            </Field>
            <Field label={t("agents.try.data")} error={"reason" in data ? t("agents.try.dataWrong", { reason: data.reason }) : undefined}>
              {(props) => <Textarea {...props} value={draft.data} placeholder='{"severity": "high"}' spellCheck={false} onChange={(event) => set("data")(event.target.value)} />}
            </Field>
          </>
        )}
        <div className="row">
          <Button type="submit" variant="primary" busy={tried.isPending} disabled={draft.type.trim() === "" || "reason" in data}>
            {t("agents.try.go")}
          </Button>
          {!more && <Button variant="quiet" onClick={() => setMore(true)}>{t("agents.try.more")}</Button>}
        </div>
      </form>
      <div aria-live="polite">
        {tried.error && <ErrorBox error={tried.error} />}
        {tried.data && <Answer tried={tried.data} />}
      </div>
    </Card>
  );
}

function Answer({ tried }: { tried: BindingTrial }) {
  const t = useT();
  const reason = reasonOf(tried.reason);
  const answer = useRef<HTMLDivElement>(null);
  // In braces: newer browsers return a promise, which is not a clean-up function.
  useEffect(() => {
    answer.current?.scrollIntoView({ block: "nearest" });
  }, [tried]);
  const lead = {
    run: t("agents.try.run", { agent: tried.agent ?? "" }), unbound: t("agents.try.unbound"), unknown_agent: t("agents.try.unknown"),
    tie: t("agents.try.tie", { names: tried.tie.join(", ") }),
  }[tried.outcome];
  return (
    <div ref={answer} className={styles["answer"]}>
      <p className={tried.outcome === "run" ? styles["answerLead"] : styles["answerBad"]}>
        <Icon name={tried.outcome === "run" ? "check" : "warning"} size={18} />
        <span>{lead} {tried.agent && <Link href={`/agents/${encodeURIComponent(tried.agent)}`}>{t("runs.binding.open")}</Link>}</span>
      </p>
      {reason && <p>{said(t, reason)}</p>}
      {tried.outcome === "run" && !tried.runner_available && <p className={styles["answerBad"]}><Icon name="warning" size={18} /><span>{t("agents.try.notReady")}</span></p>}
      <h3>{t(tried.outcome === "run" ? "agents.try.candidates" : "agents.try.none")}</h3>
      <ul className={styles["candidates"]}>
        {tried.candidates.map((candidate) => <CandidateRow key={candidate.agent} candidate={candidate} />)}
      </ul>
      {tried.grant && (
        <details>
          <summary>{t("agents.try.grant")}</summary>
          <Rights rights={rightsOf(tried.grant)} />
        </details>
      )}
    </div>
  );
}

function CandidateRow({ candidate }: { candidate: Candidate }) {
  const t = useT();
  const why = candidate.why.map((one) => {
    const text = whySay(one);
    return text === undefined ? one : said(t, text);
  });
  return (
    <li className={candidate.matches ? "" : "muted"}>
      <Icon name={candidate.chosen ? "check" : candidate.matches ? "more" : "close"} size={16} />
      <strong>{candidate.agent}</strong>
      <span>{why.join(", ")}</span>
      {candidate.chosen && <Badge tone="ok">{t("agents.chosen")}</Badge>}
    </li>
  );
}

function parsed(text: string): { value: JsonObject | undefined } | { reason: string } {
  if (text.trim() === "") return { value: undefined };
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { value: value as JsonObject } : { reason: "{…}" };
  } catch (error) {
    return { reason: error instanceof Error ? error.message : String(error) };
  }
}

function eventOf(draft: Draft, data: JsonObject | undefined): JsonObject {
  const filled = (key: string, value: string): JsonObject => (value.trim() === "" ? {} : { [key]: value.trim() });
  return {
    event_type: draft.type.trim(), input: { text: draft.text },
    ...filled("conversation_id", draft.conversation), ...filled("bot_id", draft.bot), ...filled("agent", draft.agent),
    ...(draft.actor.trim() === "" ? {} : { actor: { actor_type: "user", actor_id: draft.actor.trim() } }),
    ...(data === undefined ? {} : { data }),
  };
}
