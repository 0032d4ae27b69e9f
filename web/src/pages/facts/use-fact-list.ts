// A paged list of facts. Filters that the host does not support are applied here, reading until enough items match.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { get, type Page, type Query } from "@/api/client";
import { enough, type Matches } from "./scan";

export interface FactList<Item> {
  items: Item[];
  /** Number of items read. */
  read: number;
  last: Item | undefined;
  isPending: boolean;
  isReading: boolean;
  hasMore: boolean;
  error: unknown;
  more: () => void;
  refresh: () => void;
}

/** `matches` keeps an item, drops it, or says that no later item can match. */
export function useFactList<Item>(path: string, query: Query, matches?: Matches<Item>): FactList<Item> {
  const key = JSON.stringify([path, query]);
  const [asked, setAsked] = useState({ key, times: 1 });
  const times = asked.key === key ? asked.times : 1;
  const pages = useInfiniteQuery({
    queryKey: ["facts", path, query],
    queryFn: ({ pageParam, signal }) => get<Page<Item>>(path, { limit: matches ? 200 : 50, ...query, cursor: pageParam }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => (page.has_more ? page.next_cursor : undefined),
    // Many pages may be loaded: refreshed on request only.
    refetchOnWindowFocus: false,
  });
  const read = pages.data?.pages.map((page) => page.items) ?? [];
  const { items, ended, wantsMore } = enough(read, matches, times);
  const { hasNextPage, isFetching, isError, fetchNextPage } = pages;
  const continues = wantsMore && hasNextPage && !isFetching && !isError;
  useEffect(() => {
    if (continues) void fetchNextPage();
  }, [continues, fetchNextPage]);
  return {
    items,
    read: read.reduce((sum, page) => sum + page.length, 0),
    last: read.at(-1)?.at(-1),
    isPending: pages.isPending,
    isReading: isFetching,
    hasMore: hasNextPage && !ended,
    error: pages.error,
    more: () => {
      setAsked({ key, times: times + 1 });
      if (isError) void fetchNextPage();
    },
    refresh: () => void pages.refetch(),
  };
}
