// A message with its uploaded files as AG-UI parts.
import type { FileRef } from "./entry";

export function contentOf(text: string, files: FileRef[]): unknown {
  if (files.length === 0) return text;
  const parts = files.map((file) => ({
    type: partType(file.mime ?? ""),
    source: { type: "file", value: file.artifactId, ...(file.mime ? { mimeType: file.mime } : {}) },
  }));
  return text ? [{ type: "text", text }, ...parts] : parts;
}

function partType(mime: string): string {
  const family = mime.split("/")[0] ?? "";
  return ["image", "audio", "video"].includes(family) ? family : "document";
}
