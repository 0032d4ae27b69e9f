// A card with an optional heading and actions; and a single statistic.
import type { ReactNode } from "react";
import styles from "./surface.module.css";

export interface CardProps {
  title?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  /** Without padding, for tables and lists. */
  flush?: boolean;
  className?: string;
}

export function Card({ title, actions, children, flush, className }: CardProps) {
  return (
    <section className={`${styles["card"]} ${className ?? ""}`}>
      {(title || actions) && (
        <header className={styles["cardHead"]}>
          {title && <h2>{title}</h2>}
          <div className="spacer" />
          {actions}
        </header>
      )}
      <div className={flush ? styles["flush"] : styles["cardBody"]}>{children}</div>
    </section>
  );
}

/** A statistic: label, value and hint. */
export function Stat({ label, value, note }: { label: ReactNode; value: ReactNode; note?: ReactNode }) {
  return (
    <div className={styles["stat"]}>
      <div className={styles["statLabel"]}>{label}</div>
      <div className={styles["statValue"]}>{value}</div>
      {note && <div className={styles["statNote"]}>{note}</div>}
    </div>
  );
}

/** Name-value pairs, such as the facts of a run. */
export function Facts({ items }: { items: [ReactNode, ReactNode][] }) {
  return (
    <dl className={styles["facts"]}>
      {items.map(([name, value], index) => (
        <div key={index}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
