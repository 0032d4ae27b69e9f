// The address as it was meant: the router hands ids and queries over half decoded.
import { useLocation, useSearch } from "wouter";
import { lastPart } from "@/pages/facts/filters";

/** The query string; reading it here makes the page follow it. */
export function useQueryString(): string {
  useSearch();
  return window.location.search;
}

/** The id or name at the end of the path. */
export function useLastPart(): string {
  useLocation();
  return lastPart(window.location.pathname);
}
