// Actions of an undelivered delivery: send again or discard. For admins.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, path, post } from "@/api/client";
import type { Delivery } from "@/api/types";
import { useT } from "@/i18n";
import { useSession } from "@/pages/approvals/use-session";
import { Button, Confirm, useToast } from "@/ui";
import { mayDiscard, mayRetry } from "./delivery-status";

type Verb = "retry" | "discard";

export function DeliveryActions({ delivery }: { delivery: Delivery }) {
  const session = useSession().data;
  if (session?.role !== "admin") return null;
  return (
    <div className="row">
      {mayRetry(delivery.status) && <Act delivery={delivery} verb="retry" asks={delivery.status === "unknown"} />}
      {mayDiscard(delivery.status) && <Act delivery={delivery} verb="discard" asks />}
    </div>
  );
}

const WORDS = {
  retry: { label: "deliveries.retry", title: "deliveries.retry_unknown", text: "deliveries.retry_unknown_text", done: "deliveries.retried", icon: "refresh" },
  discard: { label: "deliveries.discard", title: "deliveries.discard_title", text: "deliveries.discard_text", done: "deliveries.discarded", icon: "trash" },
} as const;

function Act({ delivery, verb, asks }: { delivery: Delivery; verb: Verb; asks: boolean }) {
  const t = useT();
  const toast = useToast();
  const queries = useQueryClient();
  const [isAsking, setIsAsking] = useState(false);
  const words = WORDS[verb];
  const act = useMutation({
    mutationFn: () => post(path(`/v1/deliveries/{}/${verb}`, delivery.delivery_id)),
    onSuccess: () => toast(t(words.done)),
    onError: (error) => toast(error instanceof ApiError ? error.message : String(error), "bad"),
    // Another admin may have decided: refresh in either case.
    onSettled: async () => {
      setIsAsking(false);
      await Promise.all([["facts", "/v1/deliveries"], ["run", delivery.run_id], ["overview"]].map((queryKey) => queries.invalidateQueries({ queryKey })));
    },
  });
  return (
    <>
      <Button size="s" variant={verb === "discard" ? "quiet" : "secondary"} icon={words.icon} busy={act.isPending} onClick={() => (asks ? setIsAsking(true) : act.mutate())}>
        {t(words.label)}
      </Button>
      <Confirm title={t(words.title)} open={isAsking} onOpenChange={setIsAsking} danger={verb === "discard"} busy={act.isPending} confirm={t(words.label)} cancel={t("deliveries.keep")} onConfirm={() => act.mutate()}>
        <p>{t(words.text)}</p>
      </Confirm>
    </>
  );
}
