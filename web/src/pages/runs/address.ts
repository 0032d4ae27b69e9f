// Exact ids and queries from the URL: the router returns them half decoded.
import { useLocation, useSearch } from "wouter";
import { lastPart } from "@/pages/facts/filters";

/** The query string; subscribes to changes. */
export function useQueryString(): string {
  useSearch();
  return window.location.search;
}

/** The id or name at the end of the path. */
export function useLastPart(): string {
  useLocation();
  return lastPart(window.location.pathname);
}
