// The base path of the host, which the host writes into its page.

/** Without a trailing slash; empty at the root of the site. */
export function baseOf(written: string | null | undefined): string {
  return written?.startsWith("/") ? written.replace(/\/+$/, "") : "";
}

const page = typeof document === "undefined" ? null : document.querySelector('meta[name="greenroom-base"]');

export const BASE = baseOf(page?.getAttribute("content"));

/** The URL of a path of the host; absolute URLs are returned as they are. */
export function hostUrl(path: string, base = BASE): string {
  return path.startsWith("/") ? base + path : path;
}

/** A browser URL as a path of the interface. */
export function inside(pathname: string, base = BASE): string {
  const isInside = base !== "" && (pathname === base || pathname.startsWith(`${base}/`));
  return (isInside ? pathname.slice(base.length) : pathname) || "/";
}

/** Adds the prefix when the page was opened without the proxy: the router expects it. */
export function addPrefix(): void {
  const { pathname, search, hash } = window.location;
  if (BASE === "" || inside(pathname) !== pathname || pathname === BASE) return;
  window.history.replaceState(window.history.state, "", BASE + pathname + search + hash);
}
