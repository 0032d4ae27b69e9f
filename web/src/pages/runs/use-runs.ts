// The list of runs: the newest page is polled, older pages are loaded on demand, new rows can be held back.
import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { get, path, type Page } from "@/api/client";
import type { Run } from "@/api/types";
import { hasId, merged, queryOf, writeFilters, type Filters } from "./logic/filters";

const PAGE = 50;
const EVERY_MS = 2_000;
/** Pages searched for a part of an id before asking to continue. */
const SEARCH_PAGES = 20;
const SEARCH_HITS = 20;

interface LoadedRuns {
  key: string;
  runs: Run[];
  cursor: string | null;
  hasMore: boolean;
  pages: number;
  held: Run[];
}

export interface RunList {
  runs: Run[];
  /** New runs that are not shown yet. */
  held: number;
  showHeld: () => void;
  hasMore: boolean;
  loadMore: () => void;
  loadingMore: boolean;
  isPending: boolean;
  error: unknown;
  refetch: () => void;
}

/** `hold`: rows must not move, because the user reads further down. */
export function useRuns(filters: Filters, live: boolean, hold: () => boolean): RunList {
  const key = writeFilters(filters);
  const [known, setKnown] = useState<LoadedRuns>({ key: "", runs: [], cursor: null, hasMore: false, pages: 0, held: [] });
  const [loadingMore, setLoadingMore] = useState(false);
  const current = useRef(key);
  useEffect(() => {
    current.current = key;
  }, [key]);

  const head = useQuery({
    queryKey: ["runs", "head", key],
    queryFn: ({ signal }) => get<Page<Run>>("/v1/runs", { ...queryOf(filters, Date.now()), limit: PAGE }, signal),
    refetchInterval: live ? EVERY_MS : false,
  });
  const whole = /^run_[0-9a-f]{32}$/.test(filters.id ?? "") ? (filters.id ?? "") : "";
  const named = useQuery({
    queryKey: ["run", whole],
    queryFn: ({ signal }) => get<Run>(path("/v1/runs/{}", whole), undefined, signal),
    enabled: whole !== "",
  });

  useEffect(() => {
    const page = head.data;
    if (page === undefined) return;
    setKnown((before) => {
      if (before.key !== key) return { key, runs: page.items, cursor: page.next_cursor, hasMore: page.has_more, pages: 1, held: [] };
      if (!hold()) return { ...before, runs: merged(before.runs, page.items), held: [] };
      const ids = new Set(before.runs.map((run) => run.run_id));
      const isKnown = (run: Run) => ids.has(run.run_id);
      return { ...before, runs: merged(before.runs, page.items.filter(isKnown)), held: page.items.filter((run) => !isKnown(run)) };
    });
  }, [head.data, hold, key]);

  const loadMore = useCallback(() => {
    if (known.cursor === null || loadingMore) return;
    setLoadingMore(true);
    get<Page<Run>>("/v1/runs", { ...queryOf(filters, Date.now()), limit: PAGE, cursor: known.cursor })
      .then((page) => {
        if (current.current !== key) return;
        setKnown((before) => ({ ...before, runs: merged(before.runs, page.items), cursor: page.next_cursor, hasMore: page.has_more, pages: before.pages + 1 }));
      }, () => undefined)
      .finally(() => setLoadingMore(false));
  }, [filters, key, known.cursor, loadingMore]);

  const shown = useMemo(() => {
    const runs = named.data === undefined ? known.runs : merged(known.runs, [named.data]);
    return filters.id === undefined ? runs : runs.filter((run) => hasId(run, filters.id ?? ""));
  }, [known.runs, named.data, filters.id]);

  const searching = filters.id !== undefined && known.hasMore && known.pages < SEARCH_PAGES && shown.length < SEARCH_HITS && named.data === undefined;
  useEffect(() => {
    if (searching) loadMore();
  }, [searching, loadMore]);

  const showHeld = () => setKnown((before) => ({ ...before, runs: merged(before.runs, before.held), held: [] }));
  return {
    runs: known.key === key ? shown : [], held: known.held.length, showHeld, hasMore: known.hasMore, loadMore, loadingMore: loadingMore || searching,
    isPending: head.isPending || known.key !== key, error: head.error, refetch: () => void head.refetch(),
  };
}
