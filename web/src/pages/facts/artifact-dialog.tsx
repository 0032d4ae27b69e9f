// One artifact: metadata, preview and download.
import { useQuery } from "@tanstack/react-query";
import { hostUrl } from "@/api/base";
import { get, path } from "@/api/client";
import type { Artifact } from "@/api/types";
import { useLanguage, useT } from "@/i18n";
import { Button, Bytes, CopyButton, Dialog, Facts, Loaded, Time } from "@/ui";
import { bytesText } from "@/ui/format-text";
import { ArtifactPreview } from "./artifact-preview";
import { AgentLink, ConversationLink, RunLink } from "./list-parts";
import styles from "./artifacts.module.css";

export function ArtifactDialog({ id, onClose }: { id: string | null; onClose: () => void }) {
  const t = useT();
  const artifact = useQuery({
    queryKey: ["artifact", id],
    queryFn: ({ signal }) => get<Artifact>(path("/v1/artifacts/{}/metadata", id ?? ""), {}, signal),
    enabled: id !== null,
  });
  const title = artifact.data?.name ?? t("facts.artifacts_unnamed");
  return (
    <Dialog wide title={title} open={id !== null} onOpenChange={(open) => !open && onClose()} footer={<Download artifact={artifact.data} />}>
      <Loaded query={artifact}>{(loaded) => <ArtifactDetail artifact={loaded} />}</Loaded>
    </Dialog>
  );
}

function Download({ artifact }: { artifact: Artifact | undefined }) {
  const { t, language } = useLanguage();
  if (!artifact) return null;
  return (
    <Button variant="primary" icon="download" onClick={() => download(artifact)}>
      {`${t("facts.artifacts_download")} (${bytesText(artifact.size_bytes, language)})`}
    </Button>
  );
}

/** The host sends artifacts as attachments, so the page is not left. */
function download(artifact: Artifact): void {
  const link = document.createElement("a");
  link.href = hostUrl(path("/v1/artifacts/{}", artifact.artifact_id));
  link.download = artifact.name ?? artifact.artifact_id;
  link.click();
}

function ArtifactDetail({ artifact }: { artifact: Artifact }) {
  const t = useT();
  return (
    <div className="stack">
      <ArtifactPreview key={artifact.artifact_id} artifact={artifact} />
      <Facts
        items={[
          [t("facts.kind"), <code key="mime">{artifact.mime_type}</code>],
          [t("facts.size"), <Bytes key="size" value={artifact.size_bytes} />],
          [t("facts.artifacts_created"), <Time key="at" at={artifact.created_at} absolute />],
          [t("facts.artifacts_expires"), artifact.expires_at ? <Time key="until" at={artifact.expires_at} absolute /> : t("facts.artifacts_forever")],
          [t("facts.conversation"), <ConversationLink key="conversation" id={artifact.conversation_id} />],
          [t("facts.run"), <RunLink key="run" id={artifact.run_id} />],
          [t("facts.agent"), <AgentLink key="agent" name={artifact.agent} />],
          [t("facts.id"), <Copied key="id" text={artifact.artifact_id} />],
          [t("facts.artifacts_sha"), <Copied key="sha" text={artifact.sha256} />],
        ]}
      />
    </div>
  );
}

function Copied({ text }: { text: string }) {
  return (
    <span className={styles["copied"]}>
      <code className="truncate" title={text}>
        {text}
      </code>
      <CopyButton text={text} />
    </span>
  );
}
