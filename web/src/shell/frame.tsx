// The frame around every page: a side bar on wide screens, a bottom bar on phones.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { get, type Page } from "@/api/client";
import type { Approval } from "@/api/types";
import { useT } from "@/i18n";
import { Icon, Logo } from "@/ui";
import styles from "./frame.module.css";
import { useSession } from "@/pages/approvals/use-session";
import { groups, isActive, canOpen, phoneItems, type NavItem } from "./nav";
import { Preferences } from "./preferences";
import { useHostState } from "./use-host-answers";

const APPROVALS_EVERY_MS = 15_000;

export function Frame({ children }: { children: ReactNode }) {
  const t = useT();
  const [location] = useLocation();
  const [open, setOpen] = useState(false);
  const session = useSession().data;
  const allowed = (items: NavItem[]) => items.filter((item) => canOpen(item, session));
  const shown = groups.map((group) => ({ ...group, items: allowed(group.items) })).filter(({ items }) => items.length > 0);
  const isUnderMore = !phoneItems.some((item) => isActive(item, location));
  useEffect(() => setOpen(false), [location]);
  useCloseOnEscape(open, () => setOpen(false));
  return (
    <div className={styles["frame"]}>
      <a href="#content" className={styles["skip"]}>
        {t("shell.skip")}
      </a>
      <header className={`${styles["sidebar"]} ${open ? styles["open"] : ""}`} id="sidebar">
        <Link href="/" className={styles["brand"]}>
          <Logo size={26} />
          Greenroom
        </Link>
        <nav aria-label={t("shell.navigation")}>
          {shown.map((group) => (
            <div key={group.label} className={styles["group"]}>
              <div className={styles["groupLabel"]}>{t(group.label)}</div>
              {group.items.map((item) => (
                <NavLink key={item.href} item={item} at={isActive(item, location)} />
              ))}
            </div>
          ))}
        </nav>
        <div className="spacer" />
        <Preferences />
      </header>
      {open && <div className={styles["scrim"]} onClick={() => setOpen(false)} />}
      <Offline />
      <main id="content" className={styles["main"]} tabIndex={-1}>
        {children}
      </main>
      <nav className={styles["bottom"]} aria-label={t("shell.shortcuts")}>
        {allowed(phoneItems).map((item) => (
          <NavLink key={item.href} item={item} at={isActive(item, location)} />
        ))}
        <button type="button" className={`${styles["item"]} ${isUnderMore ? styles["here"] : ""}`} aria-expanded={open} aria-controls="sidebar" onClick={() => setOpen(!open)}>
          <Icon name="menu" size={20} />
          <span>{t("shell.more")}</span>
        </button>
      </nav>
    </div>
  );
}

function NavLink({ item, at }: { item: NavItem; at: boolean }) {
  const t = useT();
  return (
    <Link href={item.href} className={styles["item"]} {...(at ? { "aria-current": "page" as const } : {})}>
      <Icon name={item.icon} size={18} />
      <span>{t(item.label)}</span>
      {item.href === "/approvals" && <WaitingCount />}
    </Link>
  );
}

/** Notice while the host or its database does not respond. */
function Offline() {
  const t = useT();
  const state = useHostState();
  return (
    <div role="status" className={styles["offline"]}>
      {state !== "well" && (
        <span>
          <Icon name="warning" size={18} />
          {t(state === "away" ? "shell.offline" : "shell.no_database")}
        </span>
      )}
    </div>
  );
}

/** Number of pending approvals; nothing if the role may not see them. */
function WaitingCount() {
  const t = useT();
  const waiting = useQuery({
    queryKey: ["approvals", "waiting"],
    queryFn: () => get<Page<Approval>>("/v1/approvals", { status: "pending", limit: 100 }),
    refetchInterval: APPROVALS_EVERY_MS,
    retry: false,
  });
  const count = waiting.data?.items.length ?? 0;
  if (count === 0) return null;
  return (
    <span className={styles["count"]} title={t("shell.waiting", { count })}>
      {waiting.data?.has_more ? "99+" : count}
    </span>
  );
}

function useCloseOnEscape(open: boolean, close: () => void): void {
  useEffect(() => {
    if (!open) return;
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && close();
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [open, close]);
}
