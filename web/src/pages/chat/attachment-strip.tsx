// Attachments of the next message, above the field.
import { useT } from "@/i18n";
import { Bytes, Icon, IconButton } from "@/ui";
import type { Attachment } from "./attachments";
import styles from "./composer.module.css";

export function AttachmentStrip({ files, onRemove }: { files: Attachment[]; onRemove: (key: number) => void }) {
  const t = useT();
  if (files.length === 0) return null;
  return (
    <ul className={styles["strip"]} aria-label={t("chat.files")}>
      {files.map((file) => (
        <li key={file.key} className={`${styles["chip"]} ${file.state === "failed" ? styles["failed"] : ""}`} data-state={file.state}>
          {file.preview ? <img src={file.preview} alt="" className={styles["thumb"]} /> : <Icon name="file" size={18} />}
          <span className={styles["chipText"]}>
            <span className="truncate">{file.name}</span>
            <span className="muted">
              {file.state === "uploading" ? t("ui.loading") : file.state === "failed" ? t("chat.sendFailed") : <Bytes value={file.size} />}
            </span>
          </span>
          <IconButton icon="close" size="s" iconSize={14} label={t("chat.removeFile", { name: file.name })} onClick={() => onRemove(file.key)} />
        </li>
      ))}
    </ul>
  );
}
