// Links in untrusted texts: web and mail only.

const WEB = new Set(["http:", "https:", "mailto:"]);

export interface LinkTarget {
  href: string;
  /** On another host: opens in a new tab, with the host shown. */
  foreign: boolean;
  host: string;
}

/** Null for anything but a web or mail address. */
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
