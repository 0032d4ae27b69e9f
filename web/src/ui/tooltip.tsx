// A few words about a control, on hover and on focus.
import { Tooltip as Radix } from "radix-ui";
import type { ReactElement } from "react";
import styles from "./floating.module.css";

export function Tooltip({ text, children }: { text: string; children: ReactElement }) {
  return (
    <Radix.Root delayDuration={400}>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className={styles["tooltip"]} sideOffset={6} collisionPadding={8}>
          {text}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

export const TooltipProvider = Radix.Provider;
