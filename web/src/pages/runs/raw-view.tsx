// The raw API data of a run.
import { useState } from "react";
import { hostUrl } from "@/api/base";
import type { AuditRecord, RunResult, Story } from "@/api/types";
import { useT } from "@/i18n";
import { Button, Card, JsonView, useToast, VirtualList } from "@/ui";
import { copyText } from "@/ui/clipboard";
import styles from "./show.module.css";
import type { Results } from "./use-results";

type Part = "story" | "results" | "audit";

const sequenceOf = (result: RunResult) => String(result.sequence);
const indexKey = (_: AuditRecord, index: number) => String(index);

export function RawView({ story, results, records }: { story: Story; results: Results; records: AuditRecord[] }) {
  const t = useT();
  const [part, setPart] = useState<Part>("story");
  const id = story.run.run_id;
  const addresses: Record<Part, string> = { story: `/v1/runs/${id}/story`, results: `/v1/runs/${id}/results`, audit: `/v1/audit?run_id=${id}` };
  const names: Record<Part, string> = { story: t("runs.raw.run"), results: `${t("runs.raw.results")} (${String(results.all.length)})`, audit: `${t("runs.raw.audit")} (${String(records.length)})` };
  const copied = () => JSON.stringify(part === "story" ? story : part === "results" ? results.all : records, null, 2);
  return (
    <Card flush>
      <div className={styles["rawBar"]}>
        {(Object.keys(names) as Part[]).map((one) => (
          <Button key={one} size="s" variant={one === part ? "secondary" : "quiet"} aria-pressed={one === part} onClick={() => setPart(one)}>
            {names[one]}
          </Button>
        ))}
        <span className="spacer" />
        <code className="muted truncate">GET {hostUrl(addresses[part])}</code>
        {part !== "story" && <CopyOnDemand make={copied} />}
      </div>
      {part === "story" && <div className={styles["rawBody"]}><JsonView value={story} openDepth={2} /></div>}
      {part === "results" && (
        <VirtualList label={names.results} rows={results.all} rowKey={sequenceOf} estimate={30} height="70vh" render={(result) => <ResultLine result={result} />} />
      )}
      {part === "audit" && (
        <VirtualList label={names.audit} rows={records} rowKey={indexKey} estimate={30} height="70vh" render={(record) => <RecordLine record={record} />} />
      )}
    </Card>
  );
}

/** Builds the text on demand: it may be megabytes. */
function CopyOnDemand({ make }: { make: () => string }) {
  const t = useT();
  const toast = useToast();
  const copy = () => copyText(make()).then(() => toast(t("ui.copied")), () => toast(t("ui.copyFailed"), "bad"));
  return <Button size="s" variant="quiet" icon="copy" onClick={() => void copy()}>{t("ui.copy")}</Button>;
}

function ResultLine({ result }: { result: RunResult }) {
  return (
    <details className={styles["rawLine"]}>
      <summary>
        <span className="nums muted">{result.sequence}</span> <strong>{result.type}</strong> <code>{JSON.stringify(result.data ?? {}).slice(0, 240)}</code>
      </summary>
      <JsonView value={result} raw />
    </details>
  );
}

function RecordLine({ record }: { record: AuditRecord }) {
  return (
    <details className={styles["rawLine"]}>
      <summary>
        <span className="nums muted">{record.at.slice(11, 23)}</span> <strong>{record.method}</strong> <code>{[record.scope, record.resource, record.code].filter(Boolean).join(" · ")}</code>
      </summary>
      <JsonView value={record} raw />
    </details>
  );
}
