// The items of the navigation, in three groups.
import type { Session } from "@/api/types";
import type { Key } from "@/i18n";
import { seesApprovals } from "@/pages/approvals/use-session";
import type { IconName } from "@/ui";

export interface NavItem {
  href: string;
  label: Key;
  icon: IconName;
}

export interface NavGroup {
  label: Key;
  items: NavItem[];
}

export const groups: NavGroup[] = [
  {
    label: "shell.work",
    items: [
      { href: "/", label: "shell.overview", icon: "overview" },
      { href: "/chat", label: "shell.chat", icon: "chat" },
      { href: "/runs", label: "shell.runs", icon: "runs" },
      { href: "/approvals", label: "shell.approvals", icon: "approvals" },
    ],
  },
  {
    label: "shell.setup",
    items: [
      { href: "/agents", label: "shell.agents", icon: "agents" },
      { href: "/runners", label: "shell.runners", icon: "runners" },
    ],
  },
  {
    label: "shell.records",
    items: [
      { href: "/events", label: "shell.events", icon: "events" },
      { href: "/deliveries", label: "shell.deliveries", icon: "upload" },
      { href: "/conversations", label: "shell.conversations", icon: "conversations" },
      { href: "/artifacts", label: "shell.artifacts", icon: "artifacts" },
      { href: "/state", label: "shell.state", icon: "state" },
      { href: "/audit", label: "shell.audit", icon: "audit" },
    ],
  },
];

/** On phones these are in the bottom bar, the others under "more". */
export const phoneItems: NavItem[] = groups[0]?.items ?? [];

/** Whether the user may open a page; all are shown until the session is known. */
export function canOpen(item: NavItem, session: Session | null | undefined): boolean {
  if (session?.role !== "sender") return true;
  return item.href === "/chat" || (item.href === "/approvals" && seesApprovals(session));
}

export function isActive(item: NavItem, location: string): boolean {
  return item.href === "/" ? location === "/" : location === item.href || location.startsWith(`${item.href}/`);
}
