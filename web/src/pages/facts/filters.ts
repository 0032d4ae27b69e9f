// Filters of lists, kept in the address: a link shows what its sender saw.

/** The values of these filters in a query string; what is empty is not there. */
export function readFilters<Name extends string>(search: string, names: readonly Name[]): Partial<Record<Name, string>> {
  const params = new URLSearchParams(search);
  const filters: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = meant(name, params.get(name));
    if (value) filters[name] = value;
  }
  return filters;
}

/** The query string with some filters changed; an empty value takes one away, everything else stays. */
export function withFilters(search: string, changes: Record<string, string | null | undefined>): string {
  const params = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    const kept = meant(name, value);
    if (kept) params.set(name, kept);
    else params.delete(name);
  }
  return params.toString();
}

/** What was typed loses the spaces around it; an id is what it is. */
function meant(name: string, value: string | null | undefined): string | undefined {
  return name === "id" ? (value ?? undefined) : value?.trim();
}

/** The last part of a path as it was meant, whatever signs it holds. */
export function lastPart(pathname: string): string {
  const part = pathname.slice(pathname.lastIndexOf("/") + 1);
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** When so many minutes before now began, to the minute, so that asking twice within one asks for the same. */
export function startOf(minutes: number, now: number): string {
  const minute = 60_000;
  return new Date(Math.floor(now / minute - minutes) * minute).toISOString();
}
