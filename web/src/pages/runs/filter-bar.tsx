// The filters of the list of runs, kept in the URL so that a list can be shared.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { get, type Page } from "@/api/client";
import { RUN_STATUSES } from "@/api/run-status";
import type { Agent } from "@/api/types";
import { useT } from "@/i18n";
import { Button, Field, Input, SearchInput, Select } from "@/ui";
import type { Filters, Window } from "./logic/filters";
import styles from "./list.module.css";

const TYPING_MS = 300;

export function FilterBar({ filters, onChange }: { filters: Filters; onChange: (filters: Filters) => void }) {
  const t = useT();
  const agents = useQuery({ queryKey: ["agents"], queryFn: () => get<Page<Agent>>("/v1/agents"), staleTime: 60_000 });
  const names = new Set((agents.data?.items ?? []).map((agent) => agent.name));
  if (filters.agent !== undefined) names.add(filters.agent);
  const set = (key: keyof Filters, value: string) => {
    const rest = Object.fromEntries(Object.entries(filters).filter(([name]) => name !== key)) as Filters;
    onChange(value === "" ? rest : ({ ...rest, [key]: value } as Filters));
  };
  const statuses = RUN_STATUSES.map((status) => ({ value: status, label: t(`runs.status.${status}`) }));
  const windows: { value: Window; label: string }[] = [
    { value: "hour", label: t("runs.filter.lastHour") }, { value: "day", label: t("runs.filter.lastDay") }, { value: "week", label: t("runs.filter.lastWeek") },
  ];
  return (
    <div className={styles["filters"]} role="search">
      <Field label={t("runs.filter.id")} hideLabel>
        {(props) => <Typed {...props} search value={filters.id ?? ""} placeholder={t("runs.filter.idHint")} onType={(value) => set("id", value)} />}
      </Field>
      <Field label={t("runs.filter.status")} hideLabel>
        {(props) => <Select {...props} value={filters.status ?? ""} options={[{ value: "", label: t("runs.filter.anyEnd") }, ...statuses]} onChange={(value) => set("status", value)} />}
      </Field>
      <Field label={t("runs.filter.agent")} hideLabel>
        {(props) => (
          <Select {...props} value={filters.agent ?? ""} onChange={(value) => set("agent", value)}
            options={[{ value: "", label: t("runs.filter.anyAgent") }, ...[...names].map((name) => ({ value: name, label: name }))]} />
        )}
      </Field>
      <Field label={t("runs.filter.time")} hideLabel>
        {(props) => <Select {...props} value={filters.window ?? ""} options={[{ value: "", label: t("runs.filter.anyTime") }, ...windows]} onChange={(value) => set("window", value)} />}
      </Field>
      <Field label={t("runs.filter.conversation")} hideLabel>
        {(props) => <Typed {...props} value={filters.conversation ?? ""} placeholder={t("runs.filter.conversation")} onType={(value) => set("conversation", value)} />}
      </Field>
      {Object.keys(filters).length > 0 && (
        <Button variant="quiet" icon="close" onClick={() => onChange({})}>
          {t("runs.list.clear")}
        </Button>
      )}
    </div>
  );
}

interface TypedProps {
  id: string;
  value: string;
  placeholder: string;
  onType: (value: string) => void;
  search?: boolean;
}

/** Reports the text once the user stops typing. */
function Typed({ value, onType, search, ...rest }: TypedProps) {
  const [text, setText] = useState(value);
  const [reported, setReported] = useState(value);
  if (reported !== value) {
    setReported(value);
    setText(value);
  }
  useEffect(() => {
    if (text.trim() === value) return;
    const timer = setTimeout(() => onType(text.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, value, onType]);
  const props = { ...rest, value: text, onChange: (event: React.ChangeEvent<HTMLInputElement>) => setText(event.target.value) };
  return search ? <SearchInput {...props} /> : <Input {...props} />;
}
