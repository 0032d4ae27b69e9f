// The filters above a list; their values are in the URL.
import { useEffect, useState, type ReactNode } from "react";
import { useLocation, useSearch } from "wouter";
import { useT } from "@/i18n";
import { Button, Field, Input, SearchInput, Select } from "@/ui";
import { readFilters, withFilters } from "./filters";
import styles from "./facts.module.css";

/** The filters of this page and a setter. */
export function useFilters<Name extends string>(names: readonly Name[]) {
  // The router reports changes but returns the query half decoded: the URL itself is exact.
  useSearch();
  const { search } = window.location;
  const [location, navigate] = useLocation();
  const set = (changes: Partial<Record<Name, string | null>>, options: { replace?: boolean } = { replace: true }) => {
    const next = withFilters(search, changes as Record<string, string | null | undefined>);
    navigate(next ? `${location}?${next}` : location, options);
  };
  return { filters: readFilters(search, names), set };
}

export function FilterBar({ children, active, onClear }: { children: ReactNode; active: boolean; onClear: () => void }) {
  const t = useT();
  return (
    <form className={styles["filters"]} role="search" aria-label={t("facts.filter")} onSubmit={(event) => event.preventDefault()}>
      {children}
      {active && (
        <Button variant="quiet" icon="close" onClick={onClear}>
          {t("facts.clear")}
        </Button>
      )}
    </form>
  );
}

export interface TextFilterProps {
  label: string;
  value: string | undefined;
  onChange: (value: string) => void;
  search?: boolean;
  hideLabel?: boolean;
}

const SETTLED_MS = 350;

/** A text filter, applied when the user stops typing. */
export function TextFilter({ label, value = "", onChange, search, hideLabel }: TextFilterProps) {
  const [typed, setTyped] = useState(value);
  const [known, setKnown] = useState(value);
  if (known !== value) {
    setKnown(value);
    setTyped(value);
  }
  useEffect(() => {
    if (typed.trim() === value) return;
    const timer = setTimeout(() => onChange(typed), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [typed, value, onChange]);
  const Control = search ? SearchInput : Input;
  return (
    <Field label={label} hideLabel={hideLabel ?? false}>
      {(props) => (
        <Control
          {...props}
          value={typed}
          placeholder={hideLabel ? label : ""}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => setTyped(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && onChange(typed)}
        />
      )}
    </Field>
  );
}

export interface ChoiceFilterProps {
  label: string;
  value: string | undefined;
  options: { value: string; label: string }[];
  onChange: (value: string) => void;
  /** Label of the empty choice. */
  none?: string;
}

export function ChoiceFilter({ label, value = "", options, onChange, none }: ChoiceFilterProps) {
  const t = useT();
  const missing = value !== "" && !options.some((option) => option.value === value);
  const all = [{ value: "", label: none ?? t("facts.all") }, ...(missing ? [{ value, label: value }] : []), ...options];
  return <Field label={label}>{(props) => <Select {...props} value={value} options={all} onChange={onChange} />}</Field>;
}
