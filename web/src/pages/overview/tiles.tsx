// The key figures.
import { Link } from "wouter";
import type { Overview } from "@/api/types";
import { useLanguage } from "@/i18n";
import { Bytes, Duration, Money, Num, Stat } from "@/ui";
import { bytesText, durationText, moneyText } from "@/ui/format-text";
import { compactText, percentText, rateText } from "./figures";
import { failureRate } from "./series";
import styles from "./overview.module.css";

export function Tiles({ overview }: { overview: Overview }) {
  const { t, language } = useLanguage();
  const { totals, queue, host, store } = overview;
  return (
    <div className={styles["tiles"]}>
      {totals && <RunTiles totals={totals} minutes={overview.minutes} />}
      <Link href="/runs?status=queued">
        <Stat
          label={t("overview.queue")}
          value={<Num value={queue.queued} />}
          note={queue.running === null ? t("overview.unknown") : t("overview.queue_running", { running: queue.running })}
        />
      </Link>
      <Link href="/approvals">
        <Stat
          label={t("overview.approvals")}
          value={<Num value={queue.waiting_approvals} />}
          note={queue.waiting_approvals ? t("overview.approvals_wait") : t("overview.approvals_none")}
        />
      </Link>
      <Stat
        label={t("overview.memory")}
        value={<Bytes value={host.memory_bytes} />}
        note={store.size_bytes === null ? t("overview.memory_hint") : t("overview.store_size", { size: bytesText(store.size_bytes, language) })}
      />
    </div>
  );
}

function RunTiles({ totals, minutes }: { totals: NonNullable<Overview["totals"]>; minutes: number }) {
  const { t, language } = useLanguage();
  const failures = failureRate(totals);
  const tokens = totals.input_tokens === null && totals.output_tokens === null ? null : (totals.input_tokens ?? 0) + (totals.output_tokens ?? 0);
  const spent = totals.cost_usd;
  return (
    <>
      <Link href="/runs">
        <Stat
          label={t("overview.runs")}
          value={<Num value={totals.runs} />}
          note={t("overview.runs_rate", { rate: rateText(totals.runs / minutes, language) })}
        />
      </Link>
      <Stat
        label={t("overview.latency")}
        value={<Duration ms={totals.p50_ms} />}
        note={totals.p95_ms === null ? t("overview.no_runs") : t("overview.latency_p95", { time: durationText(totals.p95_ms, language) })}
      />
      <Link href="/runs?status=failed" data-tone={totals.failed > 0 ? "bad" : "ok"}>
        <Stat
          label={t("overview.errors")}
          value={<Num value={totals.failed} />}
          note={failures ? t("overview.errors_rate", { rate: percentText(failures, language) }) : t("overview.errors_none")}
        />
      </Link>
      <Stat
        label={t("overview.tokens")}
        value={tokens === null ? "–" : compactText(tokens, language)}
        note={
          tokens === null
            ? t("overview.unknown")
            : t("overview.tokens_split", { input: compactText(totals.input_tokens ?? 0, language), output: compactText(totals.output_tokens ?? 0, language) })
        }
      />
      <Stat
        label={t("overview.cost")}
        value={<Money amount={spent} />}
        note={spent === null ? t("overview.cost_unpriced") : t("overview.cost_per_run", { cost: moneyText(totals.runs > 0 ? spent / totals.runs : 0, "USD", language) })}
      />
    </>
  );
}
