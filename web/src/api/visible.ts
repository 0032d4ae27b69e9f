// Shows characters that change how the rest of a text is displayed, or that are displayed as nothing.
// Letters of every script and joined emoji stay as they are. The command line has the same rules (`visible.rs`).

// Controls except line breaks and tabs; direction marks, embeddings, overrides and isolates; zero-width characters,
// invisible operators and fillers; tags.
const RANGES: [number, number][] = [
  [0x00, 0x08], [0x0b, 0x1f], [0x7f, 0x9f], [0xad, 0xad], [0x34f, 0x34f], [0x61c, 0x61c], [0x115f, 0x1160],
  [0x17b4, 0x17b5], [0x180e, 0x180e], [0x200b, 0x200f], [0x2028, 0x202e], [0x2060, 0x206f], [0x3164, 0x3164],
  [0xfeff, 0xfeff], [0xffa0, 0xffa0], [0xfff9, 0xfffb], [0xe0000, 0xe0fff],
];
const HIDDEN = new RegExp(`[${RANGES.map((range) => range.map((code) => `\\u{${code.toString(16)}}`).join("-")).join("")}]`, "gu");
const JOINERS = ["\u200c", "\u200d"];

export function visibleText(text: string): string {
  if (text.search(HIDDEN) < 0) return text;
  return text.replace(/\r\n/g, "\n").replace(HIDDEN, (found, at: number, all: string) => {
    const joined = JOINERS.includes(found) && all.length > found.length && isJoined(all.slice(0, at), -1) && isJoined(all.slice(at + found.length), 0);
    return joined ? found : `<U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`;
  });
}

/** Joiners belong to the spelling of several scripts and to emoji: they stay between two such characters. */
function isJoined(text: string, at: 0 | -1): boolean {
  const next = text.at(at);
  return next === undefined || (next > "\x7f" && next.search(HIDDEN) < 0);
}

/** Ids, nonces and cursors are sent back to the host as they are. */
function isReference(key: string): boolean {
  return /(^|_)(id|nonce|cursor)$|Id$/.test(key);
}

/** Parses JSON of the host; texts in it are visible. */
export function parseVisible(text: string): unknown {
  if (text.search(HIDDEN) < 0 && !text.includes("\\u")) return JSON.parse(text);
  return JSON.parse(text, (key, value: unknown) => (typeof value === "string" && !isReference(key) ? visibleText(value) : value));
}

/** The same value with visible texts. */
export function visibleValue<T>(value: T): T {
  return value === undefined ? value : (parseVisible(JSON.stringify(value)) as T);
}
