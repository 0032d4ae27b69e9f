// Attachments of the next message, uploaded as soon as they are selected.
import { useCallback, useRef, useState } from "react";
import { upload } from "@/api/client";
import type { Artifact } from "@/api/types";
import { useLanguage } from "@/i18n";
import { useToast } from "@/ui";
import { bytesText } from "@/ui/format-text";
import type { FileRef } from "./entry";

export interface Attachment {
  key: number;
  name: string;
  mime: string;
  size: number;
  state: "uploading" | "kept" | "failed";
  artifactId: string | null;
  /** Preview of an image, until the message is sent. */
  preview: string | null;
}

const FILES_MAX = 10;
const BYTES_MAX = 100 * 1024 * 1024;
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export function useAttachments() {
  const { t, language } = useLanguage();
  const toast = useToast();
  const [files, setFiles] = useState<Attachment[]>([]);
  const next = useRef(1);
  const held = useRef(0);

  const change = (key: number, to: Partial<Attachment>) =>
    setFiles((now) => now.map((file) => (file.key === key ? { ...file, ...to } : file)));

  const add = useCallback(
    (chosen: Iterable<File>) => {
      for (const file of chosen) {
        if (file.size > BYTES_MAX) {
          toast(t("chat.fileTooLarge", { name: file.name, limit: bytesText(BYTES_MAX, language) }), "bad");
          continue;
        }
        if (held.current >= FILES_MAX) {
          toast(t("chat.tooManyFiles", { count: FILES_MAX }), "bad");
          return;
        }
        held.current += 1;
        const key = next.current++;
        const preview = PICTURES.has(file.type) ? URL.createObjectURL(file) : null;
        setFiles((now) => [...now, { key, name: file.name, mime: file.type, size: file.size, state: "uploading", artifactId: null, preview }]);
        upload<Artifact>("/v1/artifacts", file, { name: file.name }).then(
          (kept) => change(key, { state: "kept", artifactId: kept.artifact_id, mime: kept.mime_type }),
          (error: unknown) => {
            change(key, { state: "failed" });
            const why = error instanceof Error ? `: ${error.message}` : "";
            toast(t("chat.uploadFailed", { name: file.name }) + why, "bad");
          },
        );
      }
    },
    [language, t, toast],
  );

  const remove = useCallback((key: number) => {
    held.current -= 1;
    setFiles((now) => {
      const gone = now.find((file) => file.key === key);
      if (gone?.preview) URL.revokeObjectURL(gone.preview);
      return now.filter((file) => file.key !== key);
    });
  }, []);

  /** Takes the uploaded files for a message and clears the list. */
  const take = useCallback((): FileRef[] => {
    for (const file of files) if (file.preview) URL.revokeObjectURL(file.preview);
    held.current = 0;
    setFiles([]);
    return files
      .filter((file) => file.state === "kept")
      .map((file) => ({ artifactId: file.artifactId, name: file.name, mime: file.mime || null, size: file.size, url: null }));
  }, [files]);

  return { files, add, remove, take, uploading: files.some((file) => file.state === "uploading") };
}
