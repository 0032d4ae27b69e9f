// One setting: control, description and default.
import { useT } from "@/i18n";
import { Inline } from "@/pages/runs/inline";
import { Field, Input, Select, Switch, Textarea } from "@/ui";
import styles from "./agents.module.css";
import type { Field as Setting } from "./logic/form";

export interface SettingFieldProps {
  field: Setting;
  value: string | boolean;
  error?: string;
  onChange: (value: string | boolean) => void;
}

export function SettingField({ field, value, error, onChange }: SettingFieldProps) {
  const t = useT();
  const label = (
    <>
      {field.label}
      {field.required && <span className={styles["required"]} aria-hidden="true"> *</span>}
      <code className={styles["key"]}>{field.name}</code>
    </>
  );
  const hasLines = field.control === "lines" || field.control === "json" || field.control === "list";
  return (
    <div className={hasLines && field.control !== "list" ? styles["wide"] : ""}>
      <Field label={label} hint={<Hint field={field} />} {...(error === undefined ? {} : { error })}>
        {(props) => {
          if (typeof value === "boolean") {
            return (
              <span className={styles["switchRow"]}>
                <Switch id={props.id} checked={value} onChange={onChange} />
                <span className="muted">{value ? t("agents.form.yes") : t("agents.form.no")}</span>
              </span>
            );
          }
          if (field.control === "choice" || field.control === "model") return <Choice {...props} field={field} value={value} onChange={onChange} />;
          if (hasLines) {
            const rows = Math.min(12, Math.max(field.control === "lines" ? 4 : 2, value.split("\n").length + 1));
            return <Textarea {...props} rows={rows} value={value} spellCheck={field.control === "lines"} className={field.control === "json" ? "mono" : ""} placeholder={placeholder(field)} onChange={(event) => onChange(event.target.value)} />;
          }
          const mode = field.control === "whole" ? ("numeric" as const) : field.control === "number" ? ("decimal" as const) : ("text" as const);
          return <Input {...props} inputMode={mode} value={value} placeholder={placeholder(field)} onChange={(event) => onChange(event.target.value)} />;
        }}
      </Field>
    </div>
  );
}

function Choice({ field, value, onChange, ...props }: { field: Setting; value: string; onChange: (value: string) => void; id: string }) {
  const t = useT();
  const fallback = field.options.find((option) => option.value === field.fallback);
  const empty = field.control === "model" ? t("agents.form.first") : t("agents.form.default", { value: fallback?.label ?? t("agents.form.defaultEmpty") });
  const isKnown = value === "" || field.options.some((option) => option.value === value);
  const options = [{ value: "", label: empty }, ...field.options, ...(isKnown ? [] : [{ value, label: t("agents.form.notGranted", { value }) }])];
  return <Select {...props} value={value} options={options} onChange={onChange} />;
}

/** The default as placeholder. */
function placeholder(field: Setting): string {
  const { fallback } = field;
  if (fallback === undefined || fallback === null || fallback === "") return "";
  if (Array.isArray(fallback)) return fallback.map(String).join("\n");
  return typeof fallback === "object" ? JSON.stringify(fallback) : String(fallback);
}

function Hint({ field }: { field: Setting }) {
  const t = useT();
  const parts = [field.description, ...(field.control === "list" ? [t("agents.form.perLine")] : [])].filter((part) => part !== "");
  return <Inline text={parts.join(" · ")} />;
}
