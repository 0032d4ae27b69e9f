// The one-time code in the address's fragment, and where to go after signing in.

/** The code of `#code=…`; null where there is none. */
export function codeIn(fragment: string): string | null {
  return new URLSearchParams(fragment.replace(/^#/, "")).get("code")?.trim() || null;
}

/** A place on this host to go to; anything that could lead elsewhere becomes the first page. */
export function nextIn(search: string): string {
  const next = new URLSearchParams(search).get("next") ?? "/";
  const isLocal = /^\/(?![/\\])/.test(next) && !next.includes("\\") && !hasControl(next);
  return isLocal && !next.startsWith("/signin") ? next : "/";
}

function hasControl(text: string): boolean {
  return Array.from(text).some((character) => character < " " || character === "\u007f");
}
