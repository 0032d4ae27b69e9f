// Deliveries to surfaces, newest first, with actions for undelivered ones.
import { useQuery } from "@tanstack/react-query";
import { get, path } from "@/api/client";
import type { Delivery } from "@/api/types";
import { useT, useTextOf } from "@/i18n";
import { Badge, ErrorBox, Facts, JsonView, Page, Skeleton, Time } from "@/ui";
import { DeliveryActions } from "./delivery-actions";
import { DELIVERY_STATUSES, deliveryTone } from "./delivery-status";
import { DisclosureList } from "./disclosure";
import { ChoiceFilter, FilterBar, TextFilter, useFilters } from "./filter-bar";
import { ConversationLink, Listed, RefreshButton, RunLink } from "./list-parts";
import styles from "./facts.module.css";
import { useFactList } from "./use-fact-list";

const FILTERS = ["status", "surface", "run_id"] as const;

export default function DeliveriesPage() {
  const t = useT();
  const { filters, set } = useFilters(FILTERS);
  const list = useFactList<Delivery>("/v1/deliveries", filters);
  const filtered = Object.keys(filters).length > 0;
  const statuses = DELIVERY_STATUSES.map((status) => ({ value: status, label: t(`deliveries.status_${status}`) }));
  return (
    <Page title={t("deliveries.title")} subtitle={t("deliveries.lead")} actions={<RefreshButton list={list} />}>
      <FilterBar active={filtered} onClear={() => set({ status: null, surface: null, run_id: null })}>
        <ChoiceFilter label={t("deliveries.status")} value={filters.status} options={statuses} onChange={(status) => set({ status })} />
        <TextFilter label={t("deliveries.surface")} value={filters.surface} onChange={(surface) => set({ surface })} />
        <TextFilter label={t("facts.run")} value={filters.run_id} onChange={(run_id) => set({ run_id })} />
      </FilterBar>
      <Listed list={list} filtered={filtered} at={(delivery) => delivery.created_at} empty={{ icon: "upload", title: t("deliveries.empty"), hint: t("deliveries.empty_hint") }}>
        {(deliveries) => (
          <DisclosureList
            label={t("deliveries.title")}
            items={deliveries}
            itemKey={(delivery) => delivery.delivery_id}
            summary={(delivery) => <Summary delivery={delivery} />}
            details={(delivery) => <Details delivery={delivery} />}
          />
        )}
      </Listed>
    </Page>
  );
}

function Summary({ delivery }: { delivery: Delivery }) {
  const t = useT();
  return (
    <>
      <span className={styles["clock"]}>
        <Time at={delivery.created_at} />
      </span>
      <span className={styles["outcome"]}>
        <DeliveryBadge status={delivery.status} />
      </span>
      <span className={styles["grow"]}>
        {t("deliveries.to_surface", { surface: delivery.surface })}
        {delivery.error !== null && <span className="muted"> – {delivery.error}</span>}
      </span>
    </>
  );
}

export function DeliveryBadge({ status }: { status: string }) {
  const textOf = useTextOf();
  return <Badge tone={deliveryTone(status)}>{textOf("deliveries", `status_${status}`, status)}</Badge>;
}

function Details({ delivery }: { delivery: Delivery }) {
  const t = useT();
  const textOf = useTextOf();
  const whole = useQuery({
    queryKey: ["delivery", delivery.delivery_id],
    queryFn: ({ signal }) => get<Delivery>(path("/v1/deliveries/{}", delivery.delivery_id), undefined, signal),
    staleTime: Infinity,
  });
  return (
    <>
      <p className={styles["why"]}>{textOf("deliveries", `why_${delivery.status}`, delivery.status)}</p>
      <DeliveryActions delivery={delivery} />
      <Facts
        items={[
          [t("deliveries.surface"), delivery.surface],
          [t("facts.run"), <RunLink key="run" id={delivery.run_id} />],
          [t("facts.conversation"), <ConversationLink key="conversation" id={delivery.conversation_id} />],
          [t("deliveries.attempts"), String(delivery.attempts)],
          [t("deliveries.updated"), <Time key="updated" at={delivery.updated_at} />],
          ...(delivery.next_attempt_at === null ? [] : [[t("deliveries.next_attempt"), <Time key="next" at={delivery.next_attempt_at} />] as [string, React.ReactNode]]),
          ...(delivery.error === null ? [] : [[t("deliveries.error"), delivery.error] as [string, string]]),
          [t("facts.id"), <code key="id">{delivery.delivery_id}</code>],
        ]}
      />
      {whole.error ? <ErrorBox error={whole.error} onRetry={() => void whole.refetch()} /> : whole.data ? <JsonView value={whole.data.payload ?? null} openDepth={1} /> : <Skeleton lines={2} />}
    </>
  );
}
