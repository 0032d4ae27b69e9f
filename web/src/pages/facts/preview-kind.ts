// How the bytes of an artifact may be shown. What could run script in a browser is only ever text.

export type PreviewKind = "text" | "json" | "image" | "audio" | "none";

/** The most bytes that are fetched for a preview. */
export const PREVIEW_BYTES = { text: 256 * 1024, image: 16 * 1024 * 1024 } as const;

const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"]);
const TEXTS = new Set([
  "application/xml",
  "application/yaml",
  "application/x-yaml",
  "application/toml",
  "application/javascript",
  "application/x-ndjson",
  "application/x-sh",
  "image/svg+xml",
]);

/** The name decides only whether a plain text is JSON: what was stored without a type has no better one. */
export function previewKind(mimeType: string, name?: string | null): PreviewKind {
  const mime = (mimeType.split(";")[0] ?? "").trim().toLowerCase();
  if (mime === "application/json" || mime.endsWith("+json")) return "json";
  if (mime === "text/plain" && name?.toLowerCase().endsWith(".json")) return "json";
  if (IMAGES.has(mime)) return "image";
  if (mime.startsWith("audio/")) return "audio";
  if (mime.startsWith("text/") || TEXTS.has(mime) || mime.endsWith("+xml")) return "text";
  return "none";
}

/** Text that a browser would take for a page or a picture, and run. */
export function isMarkup(mimeType: string): boolean {
  return /html|xml|svg/i.test(mimeType);
}

/** JSON with line breaks, or the text as it is when it is none. */
export function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
