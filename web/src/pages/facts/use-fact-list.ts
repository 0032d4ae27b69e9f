// A list of facts read page by page. Filters the host does not know are applied here, reading on until enough fit.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { get, type Page, type Query } from "@/api/client";
import { enough, type Fits } from "./scan";

export interface FactList<Item> {
  items: Item[];
  /** How many items were read to find these. */
  read: number;
  last: Item | undefined;
  isPending: boolean;
  isReading: boolean;
  hasMore: boolean;
  error: unknown;
  more: () => void;
  refresh: () => void;
}

/** `fits` keeps an item, leaves it out, or says that nothing behind it can fit. */
export function useFactList<Item>(path: string, query: Query, fits?: Fits<Item>): FactList<Item> {
  const key = JSON.stringify([path, query]);
  const [asked, setAsked] = useState({ key, times: 1 });
  const times = asked.key === key ? asked.times : 1;
  const pages = useInfiniteQuery({
    queryKey: ["facts", path, query],
    queryFn: ({ pageParam, signal }) => get<Page<Item>>(path, { limit: fits ? 200 : 50, ...query, cursor: pageParam }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => (page.has_more ? page.next_cursor : undefined),
    // Many pages may have been read; the reader says when to look anew.
    refetchOnWindowFocus: false,
  });
  const read = pages.data?.pages.map((page) => page.items) ?? [];
  const { items, ended, wantsMore } = enough(read, fits, times);
  const { hasNextPage, isFetching, isError, fetchNextPage } = pages;
  const goesOn = wantsMore && hasNextPage && !isFetching && !isError;
  useEffect(() => {
    if (goesOn) void fetchNextPage();
  }, [goesOn, fetchNextPage]);
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
