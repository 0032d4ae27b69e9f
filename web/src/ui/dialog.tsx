// Dialogs: any content, or a confirmation.
import { Dialog as Radix } from "radix-ui";
import type { ReactElement, ReactNode } from "react";
import { useT } from "@/i18n";
import { Button, IconButton } from "./button";
import styles from "./floating.module.css";

export interface DialogProps {
  title: string;
  children: ReactNode;
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
  trigger?: ReactElement;
  footer?: ReactNode;
  wide?: boolean;
}

export function Dialog({ title, children, open, onOpenChange, trigger, footer, wide }: DialogProps) {
  const t = useT();
  return (
    <Radix.Root {...(open === undefined ? {} : { open })} {...(onOpenChange ? { onOpenChange } : {})}>
      {trigger && <Radix.Trigger asChild>{trigger}</Radix.Trigger>}
      <Radix.Portal>
        <Radix.Overlay className={styles["overlay"]} />
        <Radix.Content className={`${styles["dialog"]} ${wide ? styles["wide"] : ""}`} aria-describedby={undefined}>
          <header className={styles["head"]}>
            <Radix.Title asChild>
              <h2>{title}</h2>
            </Radix.Title>
            <Radix.Close asChild>
              <IconButton icon="close" label={t("ui.close")} />
            </Radix.Close>
          </header>
          <div className={styles["body"]}>{children}</div>
          {footer && <footer className={styles["foot"]}>{footer}</footer>}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

export interface ConfirmProps {
  title: string;
  children: ReactNode;
  open: boolean;
  onOpenChange: (open: boolean) => void;
  confirm: string;
  cancel?: string;
  onConfirm: () => void;
  danger?: boolean;
  busy?: boolean;
}

export function Confirm({ confirm, cancel, onConfirm, danger, busy, ...rest }: ConfirmProps) {
  const t = useT();
  return (
    <Dialog
      {...rest}
      footer={
        <>
          <Button onClick={() => rest.onOpenChange(false)}>{cancel ?? t("ui.cancel")}</Button>
          <Button variant={danger ? "danger" : "primary"} busy={busy ?? false} onClick={onConfirm} autoFocus>
            {confirm}
          </Button>
        </>
      }
    />
  );
}
