// A file of a message: images are shown, all files can be downloaded, remote files are not loaded.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { hostUrl } from "@/api/base";
import { get, getBlob, path } from "@/api/client";
import type { Artifact } from "@/api/types";
import { useT } from "@/i18n";
import { Bytes, Icon } from "@/ui";
import { linkTarget } from "@/ui/links";
import type { FileRef } from "./entry";
import styles from "./files.module.css";

/** Formats that cannot carry script. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const PREVIEW_BYTES_MAX = 20 * 1024 * 1024;

export function FileView({ file }: { file: FileRef }) {
  const t = useT();
  if (file.artifactId === null) return <Foreign file={file} />;
  const href = path("/v1/artifacts/{}", file.artifactId);
  const name = file.name ?? t("chat.file");
  const isPicture = PICTURES.has(file.mime ?? "") && (file.size ?? 0) <= PREVIEW_BYTES_MAX;
  return (
    <figure className={styles["file"]}>
      {isPicture && <Picture href={href} name={name} />}
      <a className={styles["link"]} href={hostUrl(href)} download={file.name ?? ""} title={t("chat.download", { name })}>
        <Icon name={isPicture ? "image" : "file"} size={16} />
        <span className="truncate">{name}</span>
        <Size file={file} />
        <Icon name="download" size={16} />
      </a>
    </figure>
  );
}

/** History names files without their size. */
function Size({ file }: { file: FileRef }) {
  const about = useQuery({
    queryKey: ["artifact", file.artifactId],
    queryFn: () => get<Artifact>(path("/v1/artifacts/{}/metadata", file.artifactId ?? "")),
    enabled: file.size === null,
    staleTime: Infinity,
    retry: false,
  });
  const size = file.size ?? about.data?.size_bytes ?? null;
  return <span className="muted">{size !== null && <Bytes value={size} />}</span>;
}

/** Fetched and shown as a blob, because the host sends all files as attachments. */
function Picture({ href, name }: { href: string; name: string }) {
  const t = useT();
  const blob = useQuery({ queryKey: ["artifact", "blob", href], queryFn: ({ signal }) => getBlob(href, signal), staleTime: Infinity, gcTime: 60_000 });
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (!blob.data) return;
    const made = URL.createObjectURL(blob.data);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob.data]);
  if (blob.error) return null;
  return <div className={styles["picture"]}>{url && <img src={url} alt={t("chat.preview", { name })} />}</div>;
}

function Foreign({ file }: { file: FileRef }) {
  const t = useT();
  const target = linkTarget(file.url ?? undefined, window.location.origin);
  const words = file.name ?? (target ? t("chat.foreignFile", { host: target.host }) : t("chat.file"));
  return (
    <span className={styles["link"]}>
      <Icon name="file" size={16} />
      {target ? (
        <a href={target.href} target="_blank" rel="noopener noreferrer nofollow">
          {words}
        </a>
      ) : (
        words
      )}
    </span>
  );
}
