// Badges, and badges for statuses.
import type { ReactNode } from "react";
import { RUN_STATUS, RUN_STATUSES } from "@/api/run-status";
import { useT, type Key } from "@/i18n";
import styles from "./surface.module.css";

export type Tone = "neutral" | "accent" | "ok" | "warn" | "bad" | "info";

export function Badge({ children, tone = "neutral", title }: { children: ReactNode; tone?: Tone; title?: string }) {
  return (
    <span className={`${styles["badge"]} ${styles[tone]}`} title={title}>
      {children}
    </span>
  );
}

const statuses: Record<string, { tone: Tone; text: Key; live?: boolean }> = {
  ...Object.fromEntries(RUN_STATUSES.map((status) => [status, { ...RUN_STATUS[status], text: `runs.status.${status}` as const }])),
  pending: { tone: "warn", text: "ui.statusPending", live: true },
  allowed: { tone: "ok", text: "ui.statusAllowed" },
  denied: { tone: "bad", text: "ui.statusDenied" },
  expired: { tone: "neutral", text: "ui.statusExpired" },
  ready: { tone: "ok", text: "ui.statusReady" },
  starting: { tone: "info", text: "ui.statusStarting", live: true },
  sign_in_required: { tone: "warn", text: "ui.statusSignIn" },
  backing_off: { tone: "warn", text: "ui.statusBackingOff", live: true },
  stopped: { tone: "neutral", text: "ui.statusStopped" },
  unbound: { tone: "warn", text: "ui.statusUnbound" },
  steered: { tone: "info", text: "ui.statusSteered" },
  ok: { tone: "ok", text: "ui.statusOk" },
  unknown: { tone: "neutral", text: "ui.statusUnknown" },
};

/** The status of a run, an approval, a runner or a tool server. */
export function StatusBadge({ status }: { status: string }) {
  const t = useT();
  const known = statuses[status];
  return (
    <span className={`${styles["badge"]} ${styles[known?.tone ?? "neutral"]}`} data-status={status}>
      <span className={`${styles["dot"]} ${known?.live ? styles["live"] : ""}`} aria-hidden="true" />
      {known ? t(known.text) : status}
    </span>
  );
}
