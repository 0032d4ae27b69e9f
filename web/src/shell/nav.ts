// Where the navigation leads, in three groups.
import type { Session } from "@/api/types-overview";
import type { Key } from "@/i18n";
import { seesApprovals } from "@/pages/approvals/use-session";
import type { IconName } from "@/ui";

export interface Place {
  href: string;
  label: Key;
  icon: IconName;
}

export interface PlaceGroup {
  label: Key;
  places: Place[];
}

export const groups: PlaceGroup[] = [
  {
    label: "shell.work",
    places: [
      { href: "/", label: "shell.overview", icon: "overview" },
      { href: "/chat", label: "shell.chat", icon: "chat" },
      { href: "/runs", label: "shell.runs", icon: "runs" },
      { href: "/approvals", label: "shell.approvals", icon: "approvals" },
    ],
  },
  {
    label: "shell.setup",
    places: [
      { href: "/agents", label: "shell.agents", icon: "agents" },
      { href: "/runners", label: "shell.runners", icon: "runners" },
    ],
  },
  {
    label: "shell.records",
    places: [
      { href: "/events", label: "shell.events", icon: "events" },
      { href: "/deliveries", label: "shell.deliveries", icon: "upload" },
      { href: "/conversations", label: "shell.conversations", icon: "conversations" },
      { href: "/artifacts", label: "shell.artifacts", icon: "artifacts" },
      { href: "/state", label: "shell.state", icon: "state" },
      { href: "/audit", label: "shell.audit", icon: "audit" },
    ],
  },
];

/** On phones these stand in the bar at the bottom, the rest behind "more". */
export const onPhones: Place[] = groups[0]?.places ?? [];

/** Whether somebody gets more than a refusal there; until it is known who they are, all is shown. */
export function mayOpen(place: Place, session: Session | null | undefined): boolean {
  if (session?.role !== "sender") return true;
  return place.href === "/chat" || (place.href === "/approvals" && seesApprovals(session));
}

export function isAt(place: Place, location: string): boolean {
  return place.href === "/" ? location === "/" : location === place.href || location.startsWith(`${place.href}/`);
}
