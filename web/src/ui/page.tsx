// The frame of a page: title, lead and actions.
import { useEffect, type ReactNode } from "react";
import { Link } from "wouter";
import { Icon } from "./icons";
import styles from "./surface.module.css";

export interface PageProps {
  title: string;
  /** Rendered instead of the title. */
  heading?: ReactNode;
  subtitle?: ReactNode;
  actions?: ReactNode;
  back?: { href: string; label: string };
  children: ReactNode;
}

export function Page({ title, heading, subtitle, actions, back, children }: PageProps) {
  useTitle(title);
  return (
    <div className={styles["page"]}>
      <header className={styles["pageHead"]}>
        <div className={styles["pageTitle"]}>
          {back && (
            <Link href={back.href} className={styles["back"]}>
              <Icon name="chevronLeft" size={16} />
              {back.label}
            </Link>
          )}
          <h1>{heading ?? title}</h1>
          {subtitle && <div className="muted">{subtitle}</div>}
        </div>
        {actions && <div className={styles["pageActions"]}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · Greenroom` : "Greenroom";
  }, [title]);
}
