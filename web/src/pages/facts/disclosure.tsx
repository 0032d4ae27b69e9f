// A list with expandable rows.
import { useState, type ReactNode } from "react";
import { Icon } from "@/ui";
import styles from "./facts.module.css";

export interface DisclosureListProps<Item> {
  label: string;
  items: Item[];
  itemKey: (item: Item, index: number) => string;
  summary: (item: Item) => ReactNode;
  details: (item: Item) => ReactNode;
}

export function DisclosureList<Item>({ label, items, itemKey, summary, details }: DisclosureListProps<Item>) {
  return (
    <ul className={styles["rows"]} aria-label={label}>
      {items.map((item, index) => (
        <Row key={itemKey(item, index)} summary={summary(item)} details={() => details(item)} />
      ))}
    </ul>
  );
}

function Row({ summary, details }: { summary: ReactNode; details: () => ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <li>
      <button type="button" className={styles["rowHead"]} aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className={open ? styles["turned"] : styles["unturned"]}>
          <Icon name="chevronRight" size={14} />
        </span>
        {summary}
      </button>
      {open && <div className={styles["rowBody"]}>{details()}</div>}
    </li>
  );
}
