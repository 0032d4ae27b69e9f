// The path that the host is reached under, which it writes into its page: others may be behind the same proxy.

/** Without a slash at the end; empty on a site of the host's own. */
export function baseOf(written: string | null | undefined): string {
  return written?.startsWith("/") ? written.replace(/\/+$/, "") : "";
}

const page = typeof document === "undefined" ? null : document.querySelector('meta[name="greenroom-base"]');

export const BASE = baseOf(page?.getAttribute("content"));

/** The address of a path of the host; one that is whole already stays as it is. */
export function hostUrl(path: string, base = BASE): string {
  return path.startsWith("/") ? base + path : path;
}

/** An address of the browser as a path of the interface. */
export function inside(pathname: string, base = BASE): string {
  const isInside = base !== "" && (pathname === base || pathname.startsWith(`${base}/`));
  return (isInside ? pathname.slice(base.length) : pathname) || "/";
}

/** Whoever comes past the proxy has no prefix in the address; the interface knows its pages with it. */
export function addPrefix(): void {
  const { pathname, search, hash } = window.location;
  if (BASE === "" || inside(pathname) !== pathname || pathname === BASE) return;
  window.history.replaceState(window.history.state, "", BASE + pathname + search + hash);
}
