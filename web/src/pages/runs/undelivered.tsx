// Undelivered output of a run, with actions.
import { Link } from "wouter";
import type { Story } from "@/api/types";
import { useT } from "@/i18n";
import { DeliveryActions } from "@/pages/facts/delivery-actions";
import { mayRetry } from "@/pages/facts/delivery-status";
import { Card, StatusBadge } from "@/ui";

export function Undelivered({ story }: { story: Story }) {
  const t = useT();
  const found = story.deliveries.filter((delivery) => mayRetry(delivery.status));
  if (found.length === 0) return null;
  return (
    <Card
      title={t("deliveries.undelivered", { count: found.length })}
      actions={<Link href={`/deliveries?run_id=${encodeURIComponent(story.run.run_id)}`}>{t("deliveries.all_of_run")}</Link>}
    >
      <div className="stack">
        {found.map((delivery) => (
          <div key={delivery.delivery_id} className="row" data-delivery={delivery.delivery_id}>
            <StatusBadge status={delivery.status} />
            <span>
              {t("deliveries.to_surface", { surface: delivery.surface })}
              {delivery.error !== null && <span className="muted"> – {delivery.error}</span>}
            </span>
            <span className="spacer" />
            <DeliveryActions delivery={delivery} />
          </div>
        ))}
      </div>
    </Card>
  );
}
