// Form controls with label, hint and error.
import { Switch as RadixSwitch } from "radix-ui";
import { useId, type InputHTMLAttributes, type ReactNode, type Ref, type SelectHTMLAttributes, type TextareaHTMLAttributes } from "react";
import styles from "./field.module.css";
import { Icon } from "./icons";

export interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  error?: ReactNode;
  /** The label is for screen readers only. */
  hideLabel?: boolean;
  children: (props: { id: string; "aria-describedby"?: string; "aria-invalid"?: true }) => ReactNode;
}

/** `<Field label="Name">{(props) => <Input {...props} … />}</Field>` */
export function Field({ label, hint, error, hideLabel, children }: FieldProps) {
  const id = useId();
  const about = hint || error ? { "aria-describedby": `${id}-about` } : {};
  return (
    <div className={styles["field"]}>
      <label htmlFor={id} className={hideLabel ? "visually-hidden" : styles["label"]}>
        {label}
      </label>
      {children({ id, ...about, ...(error ? { "aria-invalid": true as const } : {}) })}
      {(hint || error) && (
        <div id={`${id}-about`} className={error ? styles["error"] : styles["hint"]}>
          {error ?? hint}
        </div>
      )}
    </div>
  );
}

export function Input({ className, ...rest }: InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }) {
  return <input {...rest} className={`${styles["control"]} ${className ?? ""}`} />;
}

export function SearchInput({ className, ...rest }: InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }) {
  return (
    <span className={`${styles["search"]} ${className ?? ""}`}>
      <Icon name="search" size={16} />
      <input type="search" {...rest} className={styles["control"]} />
    </span>
  );
}

export function Textarea({ className, ...rest }: TextareaHTMLAttributes<HTMLTextAreaElement> & { ref?: Ref<HTMLTextAreaElement> }) {
  return <textarea {...rest} className={`${styles["control"]} ${styles["textarea"]} ${className ?? ""}`} />;
}

export interface SelectProps extends Omit<SelectHTMLAttributes<HTMLSelectElement>, "onChange"> {
  options: { value: string; label: string; disabled?: boolean }[];
  onChange: (value: string) => void;
}

export function Select({ options, onChange, className, ...rest }: SelectProps) {
  return (
    <span className={`${styles["select"]} ${className ?? ""}`}>
      <select {...rest} className={styles["control"]} onChange={(event) => onChange(event.target.value)}>
        {options.map((option) => (
          <option key={option.value} value={option.value} disabled={option.disabled}>
            {option.label}
          </option>
        ))}
      </select>
      <Icon name="chevronDown" size={16} />
    </span>
  );
}

export interface SwitchProps {
  checked: boolean;
  onChange: (checked: boolean) => void;
  id?: string;
  label?: string;
  disabled?: boolean;
}

export function Switch({ checked, onChange, label, ...rest }: SwitchProps) {
  return (
    <RadixSwitch.Root {...rest} checked={checked} onCheckedChange={onChange} aria-label={label} className={styles["switch"]}>
      <RadixSwitch.Thumb className={styles["thumb"]} />
    </RadixSwitch.Root>
  );
}
