// What an address in a text of others may do: be a link to the web, or nothing.

const WEB = new Set(["http:", "https:", "mailto:"]);

export interface LinkTarget {
  href: string;
  /** Of another host; it opens in a new tab and is named. */
  foreign: boolean;
  host: string;
}

/** Null for everything that is not an ordinary web or mail address. */
export function linkTarget(text: string | undefined, origin: string): LinkTarget | null {
  if (!text) return null;
  let url: URL;
  try {
    url = new URL(text, origin);
  } catch {
    return null;
  }
  if (!WEB.has(url.protocol)) return null;
  return { href: url.href, foreign: url.origin !== origin, host: url.host || url.pathname };
}
