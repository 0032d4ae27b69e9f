// Artifacts with previews.
import { useRef, useState, type DragEvent } from "react";
import { Link } from "wouter";
import { ApiError, upload } from "@/api/client";
import type { Artifact } from "@/api/types";
import { useT } from "@/i18n";
import { Bytes, Button, Icon, Page, Table, Time, useToast, type Column } from "@/ui";
import { useSession } from "../approvals/use-session";
import { ArtifactDialog } from "./artifact-dialog";
import { withFilters } from "./filters";
import { ChoiceFilter, FilterBar, TextFilter, useFilters } from "./filter-bar";
import { ConversationLink, Listed, RefreshButton, RunLink } from "./list-parts";
import { previewKind } from "./preview-kind";
import styles from "./artifacts.module.css";
import { useFactList, type FactList } from "./use-fact-list";

const FILTERS = ["mime", "conversation_id", "run_id", "id"] as const;
const KINDS = { image: "image/*", text: "text/*", json: "application/json", audio: "audio/*", pdf: "application/pdf" } as const;

export default function ArtifactsPage() {
  const t = useT();
  const { filters, set } = useFilters(FILTERS);
  const { id, ...query } = filters;
  const list = useFactList<Artifact>("/v1/artifacts", query);
  const filtered = Object.keys(query).length > 0;
  const uploading = useUpload(list, (artifact) => set({ id: artifact.artifact_id }));
  const kinds = (Object.keys(KINDS) as (keyof typeof KINDS)[]).map((kind) => ({ value: KINDS[kind], label: t(`facts.artifacts_kind_${kind}`) }));
  return (
    <div className={styles["drop"]} data-over={uploading.over} {...uploading.drop}>
      <Page
        title={t("facts.artifacts_title")}
        subtitle={t("facts.artifacts_lead")}
        actions={
          <>
            <RefreshButton list={list} />
            <UploadButton busy={uploading.busy} send={uploading.send} />
          </>
        }
      >
        <FilterBar active={filtered} onClear={() => set({ mime: null, conversation_id: null, run_id: null })}>
          <ChoiceFilter label={t("facts.kind")} value={filters.mime} options={kinds} onChange={(mime) => set({ mime })} />
          <TextFilter label={t("facts.conversation")} value={filters.conversation_id} onChange={(next) => set({ conversation_id: next })} />
          <TextFilter label={t("facts.run")} value={filters.run_id} onChange={(next) => set({ run_id: next })} />
        </FilterBar>
        <Listed
          list={list}
          filtered={filtered}
          at={(artifact) => artifact.created_at}
          empty={{
            icon: "artifacts",
            title: t("facts.artifacts_empty"),
            hint: t("facts.artifacts_empty_hint"),
            action: <UploadButton busy={uploading.busy} send={uploading.send} />,
          }}
        >
          {(artifacts) => <ArtifactTable artifacts={artifacts} />}
        </Listed>
      </Page>
      {uploading.over && <div className={styles["veil"]}>{t("facts.artifacts_drop")}</div>}
      <ArtifactDialog id={id ?? null} onClose={() => set({ id: null })} />
    </div>
  );
}

function ArtifactTable({ artifacts }: { artifacts: Artifact[] }) {
  const t = useT();
  const { search } = window.location;
  const hrefOf = (artifact: Artifact) => `/artifacts?${withFilters(search, { id: artifact.artifact_id })}`;
  const columns: Column<Artifact>[] = [
    {
      key: "name",
      lead: true,
      header: t("facts.artifacts_name"),
      cell: (artifact) => (
        <Link href={hrefOf(artifact)} className={styles["file"]}>
          <Icon name={iconOf(artifact)} size={18} />
          <span className="truncate">{artifact.name ?? t("facts.artifacts_unnamed")}</span>
        </Link>
      ),
    },
    { key: "kind", header: t("facts.kind"), width: "190px", wideOnly: true, cell: (artifact) => <code className="muted">{artifact.mime_type}</code> },
    { key: "size", header: t("facts.size"), width: "100px", align: "end", cell: (artifact) => <Bytes value={artifact.size_bytes} /> },
    { key: "owner", header: t("facts.artifacts_owner"), width: "190px", cell: (artifact) => <Owner artifact={artifact} /> },
    { key: "time", header: t("facts.artifacts_created"), width: "120px", cell: (artifact) => <Time at={artifact.created_at} /> },
  ];
  return (
    <Table label={t("facts.artifacts_title")} columns={columns} rows={artifacts} rowKey={(artifact) => artifact.artifact_id} href={hrefOf} />
  );
}

function iconOf(artifact: Artifact): "image" | "artifacts" | "file" | "play" {
  switch (previewKind(artifact.mime_type, artifact.name)) {
    case "image":
      return "image";
    case "audio":
      return "play";
    case "none":
      return "file";
    default:
      return "artifacts";
  }
}

function Owner({ artifact }: { artifact: Artifact }) {
  const t = useT();
  if (artifact.conversation_id) return <ConversationLink id={artifact.conversation_id} />;
  if (artifact.run_id) return <RunLink id={artifact.run_id} />;
  return <span className="muted">{t("facts.artifacts_owner_none")}</span>;
}

function UploadButton({ busy, send }: { busy: boolean; send: (files: Iterable<File>) => void }) {
  const t = useT();
  const session = useSession();
  const input = useRef<HTMLInputElement>(null);
  if (session.data?.role === "reader") return null;
  return (
    <>
      <Button variant="primary" icon="upload" busy={busy} onClick={() => input.current?.click()}>
        {t("facts.artifacts_upload")}
      </Button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={t("facts.artifacts_upload")}
        onChange={(event) => {
          send(event.target.files ?? []);
          event.target.value = "";
        }}
      />
    </>
  );
}

/** Uploads the selected or dropped files one after the other and shows the last one. */
function useUpload(list: FactList<Artifact>, onKept: (artifact: Artifact) => void) {
  const t = useT();
  const toast = useToast();
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(false);
  const sendAll = async (files: File[]) => {
    setBusy(true);
    let kept: Artifact | null = null;
    for (const file of files) {
      try {
        kept = await upload<Artifact>("/v1/artifacts", file, { name: file.name });
        toast(t("facts.artifacts_uploaded", { name: kept.name ?? kept.artifact_id }));
      } catch (error) {
        const why = error instanceof ApiError ? error.message : String(error);
        toast(`${t("facts.artifacts_upload_failed")}: ${file.name}. ${why}`, "bad");
      }
    }
    setBusy(false);
    list.refresh();
    if (kept && files.length === 1) onKept(kept);
  };
  const send = (files: Iterable<File>) => {
    const chosen = Array.from(files);
    if (chosen.length > 0 && !busy) void sendAll(chosen);
  };
  const hasFiles = (event: DragEvent) => event.dataTransfer.types.includes("Files");
  const drop = {
    onDragOver: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: (event: DragEvent) => {
      if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
    },
    onDrop: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      send(event.dataTransfer.files);
    },
  };
  return { busy, over, send, drop };
}
