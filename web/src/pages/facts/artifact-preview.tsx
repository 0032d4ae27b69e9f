// Preview of an artifact. Its bytes are fetched, never navigated to, and markup is shown as text.
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";
import { hostUrl } from "@/api/base";
import { path, request } from "@/api/client";
import type { Artifact } from "@/api/types";
import { useT } from "@/i18n";
import { Bytes, Empty, Loaded, Skeleton } from "@/ui";
import { isMarkup, prettyJson, PREVIEW_BYTES, previewKind } from "./preview-kind";
import styles from "./artifacts.module.css";

const Code = lazy(() => import("@/ui/code").then((module) => ({ default: module.Code })));

export function ArtifactPreview({ artifact }: { artifact: Artifact }) {
  const t = useT();
  const kind = previewKind(artifact.mime_type, artifact.name);
  if (kind === "none" || artifact.size_bytes === 0) return <Empty icon="file" title={t("facts.artifacts_no_preview")} />;
  if (kind === "text" || kind === "json") return <TextPreview artifact={artifact} isJson={kind === "json"} />;
  if (kind === "audio") return <SoundPreview artifact={artifact} />;
  if (artifact.size_bytes > PREVIEW_BYTES.image) return <Empty icon="file" title={t("facts.artifacts_too_large")} />;
  return <ImagePreview artifact={artifact} />;
}

function useBytes(artifact: Artifact, most?: number) {
  return useQuery({
    queryKey: ["artifact-bytes", artifact.artifact_id, most],
    queryFn: async ({ signal }) => {
      const headers: Record<string, string> = most && artifact.size_bytes > most ? { Range: `bytes=0-${most - 1}` } : {};
      const response = await request(path("/v1/artifacts/{}", artifact.artifact_id), { signal, headers });
      return response.arrayBuffer();
    },
    staleTime: Infinity,
    gcTime: 0,
  });
}

function TextPreview({ artifact, isJson }: { artifact: Artifact; isJson: boolean }) {
  const t = useT();
  const bytes = useBytes(artifact, PREVIEW_BYTES.text);
  const whole = artifact.size_bytes <= PREVIEW_BYTES.text;
  return (
    <Loaded query={bytes}>
      {(data) => {
        // Drops an incomplete character at the end.
        const text = new TextDecoder().decode(data, { stream: !whole });
        return (
          <div className={styles["text"]}>
            {isMarkup(artifact.mime_type) && <p className="muted">{t("facts.artifacts_as_text")}</p>}
            <Suspense fallback={<Skeleton lines={4} />}>
              <Code text={isJson && whole ? prettyJson(text) : text} language={isJson ? "json" : "text"} />
            </Suspense>
            {!whole && (
              <p className="muted">
                {t("facts.artifacts_cut")} <Bytes value={PREVIEW_BYTES.text} />
              </p>
            )}
          </div>
        );
      }}
    </Loaded>
  );
}

function ImagePreview({ artifact }: { artifact: Artifact }) {
  const t = useT();
  const bytes = useBytes(artifact);
  const url = useObjectUrl(bytes.data, artifact.mime_type);
  const [broken, setBroken] = useState(false);
  if (broken) return <Broken />;
  return (
    <Loaded query={bytes}>
      {() => (
        <div className={styles["media"]}>
          {url && <img src={url} alt={artifact.name ?? t("facts.artifacts_unnamed")} onError={() => setBroken(true)} />}
        </div>
      )}
    </Loaded>
  );
}

/** Audio is streamed in ranges. */
function SoundPreview({ artifact }: { artifact: Artifact }) {
  const t = useT();
  const [broken, setBroken] = useState(false);
  if (broken) return <Broken />;
  return (
    <div className={styles["media"]}>
      <audio
        src={hostUrl(path("/v1/artifacts/{}", artifact.artifact_id))}
        controls
        preload="metadata"
        aria-label={artifact.name ?? t("facts.artifacts_unnamed")}
        onError={() => setBroken(true)}
      />
    </div>
  );
}

function Broken() {
  const t = useT();
  return <Empty icon="warning" title={t("facts.artifacts_broken")} />;
}

function useObjectUrl(data: ArrayBuffer | undefined, type: string): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (!data) return;
    const made = URL.createObjectURL(new Blob([data], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [data, type]);
  return url;
}
