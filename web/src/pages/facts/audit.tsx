// Calls of runners as sentences; filters in the URL.
import { Link } from "wouter";
import type { AuditRecord } from "@/api/types";
import { useT, useTextOf } from "@/i18n";
import { Badge, Bytes, Duration, Facts, JsonView, Page, Time, type Tone } from "@/ui";
import { RANGES, rangeOf } from "../overview/series";
import { auditReason, auditSentence, CODE_NAMES, METHOD_NAMES } from "./audit-sentence";
import { auditMatches, auditQuery } from "./audit-filters";
import { DisclosureList } from "./disclosure";
import { ChoiceFilter, FilterBar, TextFilter, useFilters } from "./filter-bar";
import { AgentLink, Listed, RefreshButton, RunLink } from "./list-parts";
import styles from "./facts.module.css";
import { useFactList } from "./use-fact-list";

const FILTERS = ["run_id", "who", "method", "outcome", "time"] as const;

export default function AuditPage() {
  const t = useT();
  const { filters, set } = useFilters(FILTERS);
  const list = useFactList<AuditRecord>("/v1/audit", auditQuery(filters), auditMatches(filters, Date.now()));
  const filtered = Object.keys(filters).length > 0;
  return (
    <Page title={t("facts.audit_title")} subtitle={t("facts.audit_lead")} actions={<RefreshButton list={list} />}>
      <FilterBar active={filtered} onClear={() => set({ run_id: null, who: null, method: null, outcome: null, time: null })}>
        <ChoiceFilter label={t("facts.audit_outcome")} value={filters.outcome} options={useOutcomes()} onChange={(outcome) => set({ outcome })} />
        <ChoiceFilter
          label={t("facts.audit_method")}
          value={filters.method}
          options={METHOD_NAMES.map((name) => ({ value: name, label: name }))}
          onChange={(method) => set({ method })}
        />
        <TextFilter label={t("facts.audit_who")} value={filters.who} onChange={(who) => set({ who })} />
        <TextFilter label={t("facts.run")} value={filters.run_id} onChange={(run_id) => set({ run_id })} />
        <ChoiceFilter
          label={t("facts.time")}
          none={t("facts.any_time")}
          value={filters.time}
          options={(Object.keys(RANGES) as (keyof typeof RANGES)[]).map((name) => ({ value: name, label: t(`overview.range_${name}`) }))}
          onChange={(time) => set({ time: time ? rangeOf(time) : null })}
        />
      </FilterBar>
      <Listed
        list={list}
        filtered={filtered}
        at={(record) => record.at}
        empty={{ icon: "audit", title: t("facts.audit_empty"), hint: t("facts.audit_empty_hint") }}
      >
        {(records) => (
          <DisclosureList
            label={t("facts.audit_title")}
            items={records}
            itemKey={(record, index) => `${record.at} ${record.run_id} ${record.method} ${index}`}
            summary={(record) => <Summary record={record} />}
            details={(record) => <Details record={record} />}
          />
        )}
      </Listed>
    </Page>
  );
}

function useOutcomes(): { value: string; label: string }[] {
  const t = useT();
  const codes = CODE_NAMES.map((code) => ({ value: code as string, label: `${t(`facts.code_${code}`)} (${code})` }));
  return [{ value: "denied", label: t("facts.audit_outcome_denied") }, ...codes];
}

function Summary({ record }: { record: AuditRecord }) {
  const t = useT();
  const textOf = useTextOf();
  return (
    <>
      <span className={styles["clock"]}>
        <Time at={record.at} />
      </span>
      <span className={styles["outcome"]}>
        <Badge tone={toneOf(record.code)} title={record.code}>
          {textOf("facts", `code_${record.code}`, record.code)}
        </Badge>
      </span>
      <span className={styles["grow"]}>{auditSentence(t, record)}</span>
      <span className={styles["aside"]}>
        <Duration ms={record.duration_us / 1000} />
      </span>
    </>
  );
}

function Details({ record }: { record: AuditRecord }) {
  const t = useT();
  const textOf = useTextOf();
  const { authority } = record;
  return (
    <>
      <p className={styles["why"]}>{auditReason(t, record.code)}</p>
      <Facts
        items={[
          [t("facts.audit_method"), <code key="method">{record.method}</code>],
          [t("facts.audit_outcome"), <code key="code">{record.code}</code>],
          [t("facts.run"), <RunLink key="run" id={record.run_id} />],
          [t("facts.agent"), <AgentLink key="agent" name={record.agent} />],
          [t("facts.runner"), record.runner],
          [t("facts.audit_plugin"), record.plugin],
          [t("facts.audit_resource"), <Resource key="resource" record={record} />],
          [t("facts.audit_scope"), record.scope ?? "–"],
          ...(authority ? [[t("facts.audit_authority"), textOf("facts", `audit_authority_${authority}`, authority)] as [string, string]] : []),
          [t("facts.time"), <Time key="at" at={record.at} absolute />],
          [
            t("facts.audit_traffic"),
            <span key="bytes">
              <Bytes value={record.bytes_in} /> → <Bytes value={record.bytes_out} />
            </span>,
          ],
        ]}
      />
      <JsonView value={record} openDepth={0} />
    </>
  );
}

function Resource({ record }: { record: AuditRecord }) {
  const { resource } = record;
  if (!resource) return <span className="muted">–</span>;
  if (resource.startsWith("art_")) return <Link href={`/artifacts?id=${encodeURIComponent(resource)}`}>{resource}</Link>;
  return <code>{resource}</code>;
}

function toneOf(code: string): Tone {
  if (code === "ok") return "ok";
  return code === "not_found" || code === "rate_limited" || code === "invalid_argument" ? "warn" : "bad";
}
