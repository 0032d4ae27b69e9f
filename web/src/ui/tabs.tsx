// Tabs.
import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";
import styles from "./tabs.module.css";

export interface Tab {
  value: string;
  label: ReactNode;
  content: ReactNode;
}

export function Tabs({ tabs, value, onChange, label }: { tabs: Tab[]; value?: string; onChange?: (value: string) => void; label: string }) {
  const first = tabs[0]?.value ?? "";
  return (
    <Radix.Root {...(value === undefined ? { defaultValue: first } : { value })} {...(onChange ? { onValueChange: onChange } : {})}>
      <Radix.List className={styles["list"]} aria-label={label}>
        {tabs.map((tab) => (
          <Radix.Trigger key={tab.value} value={tab.value} className={styles["tab"]}>
            {tab.label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content key={tab.value} value={tab.value} className={styles["content"]}>
          {tab.content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
