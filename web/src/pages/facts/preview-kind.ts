// How an artifact may be previewed. Types that could run script are shown as text.

export type PreviewKind = "text" | "json" | "image" | "audio" | "none";

/** Maximum bytes fetched for a preview. */
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

/** The name only decides whether plain text is JSON. */
export function previewKind(mimeType: string, name?: string | null): PreviewKind {
  const mime = (mimeType.split(";")[0] ?? "").trim().toLowerCase();
  if (mime === "application/json" || mime.endsWith("+json")) return "json";
  if (mime === "text/plain" && name?.toLowerCase().endsWith(".json")) return "json";
  if (IMAGES.has(mime)) return "image";
  if (mime.startsWith("audio/")) return "audio";
  if (mime.startsWith("text/") || TEXTS.has(mime) || mime.endsWith("+xml")) return "text";
  return "none";
}

/** Text types that a browser would render and run. */
export function isMarkup(mimeType: string): boolean {
  return /html|xml|svg/i.test(mimeType);
}

/** Indented JSON, or the text itself if it is not JSON. */
export function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
