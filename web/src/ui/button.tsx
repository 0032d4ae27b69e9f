// Buttons: with text, or with an icon and an accessible name.
import type { ButtonHTMLAttributes, Ref } from "react";
import { Link } from "wouter";
import styles from "./button.module.css";
import { Icon, type IconName } from "./icons";
import { Tooltip } from "./tooltip";

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: "primary" | "secondary" | "quiet" | "danger";
  size?: "s" | "m";
  icon?: IconName;
  busy?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

function classOf(variant: string, size: string, extra?: string): string {
  return [styles["button"], styles[variant], styles[size], extra].filter(Boolean).join(" ");
}

export function Button({ variant = "secondary", size = "m", icon, busy, children, className, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} aria-busy={busy} disabled={rest.disabled || busy} className={classOf(variant, size, className)}>
      {busy ? <span className={styles["spinner"]} aria-hidden="true" /> : icon && <Icon name={icon} size={16} />}
      {children}
    </button>
  );
}

/** A link that looks like a button. */
export function ButtonLink(props: { href: string; variant?: ButtonProps["variant"]; size?: "s" | "m"; icon?: IconName; children: React.ReactNode }) {
  return (
    <Link href={props.href} className={classOf(props.variant ?? "secondary", props.size ?? "m")}>
      {props.icon && <Icon name={props.icon} size={16} />}
      {props.children}
    </Link>
  );
}

/** A link with only an icon. */
export function IconLink({ href, icon, label }: { href: string; icon: IconName; label: string }) {
  return (
    <Tooltip text={label}>
      <Link href={href} aria-label={label} className={`${classOf("quiet", "m")} ${styles["square"]}`}>
        <Icon name={icon} size={18} />
      </Link>
    </Tooltip>
  );
}

export interface IconButtonProps extends Omit<ButtonProps, "children" | "icon"> {
  icon: IconName;
  label: string;
  iconSize?: number;
}

export function IconButton({ icon, label, variant = "quiet", size = "m", iconSize = 18, busy, className, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label}>
      <button
        type="button"
        {...rest}
        aria-label={label}
        aria-busy={busy}
        disabled={rest.disabled || busy}
        className={`${classOf(variant, size, className)} ${styles["square"]}`}
      >
        {busy ? <span className={styles["spinner"]} aria-hidden="true" /> : <Icon name={icon} size={iconSize} />}
      </button>
    </Tooltip>
  );
}
