// A menu that opens from a button.
import { DropdownMenu } from "radix-ui";
import type { ReactElement, ReactNode } from "react";
import styles from "./floating.module.css";
import { Icon, type IconName } from "./icons";

export function Menu({ trigger, children, align = "end" }: { trigger: ReactElement; children: ReactNode; align?: "start" | "end" }) {
  return (
    // Not modal: that would hide the page from screen readers while its links stay reachable.
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className={styles["menu"]} align={align} sideOffset={6} collisionPadding={8}>
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

export interface MenuItemProps {
  children: ReactNode;
  onSelect: () => void;
  icon?: IconName;
  /** For choices: whether this one is selected. */
  checked?: boolean;
  disabled?: boolean;
  danger?: boolean;
}

export function MenuItem({ children, onSelect, icon, checked, disabled, danger }: MenuItemProps) {
  const inner = (
    <>
      {checked !== undefined && <span className={styles["mark"]}>{checked && <Icon name="check" size={16} />}</span>}
      {icon && <Icon name={icon} size={16} />}
      {children}
    </>
  );
  const className = `${styles["item"]} ${danger ? styles["danger"] : ""}`;
  if (checked !== undefined) {
    return (
      <DropdownMenu.CheckboxItem className={className} checked={checked} disabled={disabled ?? false} onSelect={onSelect}>
        {inner}
      </DropdownMenu.CheckboxItem>
    );
  }
  return (
    <DropdownMenu.Item className={className} disabled={disabled ?? false} onSelect={onSelect}>
      {inner}
    </DropdownMenu.Item>
  );
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return <DropdownMenu.Label className={styles["label"]}>{children}</DropdownMenu.Label>;
}

export function MenuSeparator() {
  return <DropdownMenu.Separator className={styles["separator"]} />;
}
