// Filters of lists, kept in the URL so that a list can be shared.

/** The values of these filters in a query string, without empty ones. */
export function readFilters<Name extends string>(search: string, names: readonly Name[]): Partial<Record<Name, string>> {
  const params = new URLSearchParams(search);
  const filters: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = meant(name, params.get(name));
    if (value) filters[name] = value;
  }
  return filters;
}

/** The query string with some filters changed; an empty value removes one. */
export function withFilters(search: string, changes: Record<string, string | null | undefined>): string {
  const params = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    const kept = meant(name, value);
    if (kept) params.set(name, kept);
    else params.delete(name);
  }
  return params.toString();
}

/** Trims typed text; ids are used as they are. */
function meant(name: string, value: string | null | undefined): string | undefined {
  return name === "id" ? (value ?? undefined) : value?.trim();
}

/** The decoded last segment of a path. */
export function lastPart(pathname: string): string {
  const part = pathname.slice(pathname.lastIndexOf("/") + 1);
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The time this many minutes ago, rounded to the minute so that repeated queries are equal. */
export function startOf(minutes: number, now: number): string {
  const minute = 60_000;
  return new Date(Math.floor(now / minute - minutes) * minute).toISOString();
}
