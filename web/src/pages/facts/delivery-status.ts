// The statuses of a delivery and the actions they allow.
import type { Tone } from "@/ui";

export const DELIVERY_STATUSES = ["pending", "claimed", "done", "failed", "unknown", "discarded"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

const TONES: Record<DeliveryStatus, Tone> = { pending: "info", claimed: "info", done: "ok", failed: "bad", unknown: "warn", discarded: "neutral" };

export function deliveryTone(status: string): Tone {
  return TONES[status as DeliveryStatus] ?? "neutral";
}

/** Failed or unknown: needs a decision. */
export function mayRetry(status: string): boolean {
  return status === "failed" || status === "unknown";
}

export function mayDiscard(status: string): boolean {
  return mayRetry(status) || status === "pending";
}
