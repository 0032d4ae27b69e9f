// Whether the system theme is dark, updated when it changes.
import { useSyncExternalStore } from "react";

const query = () => window.matchMedia("(prefers-color-scheme: dark)");

function subscribe(listener: () => void): () => void {
  const media = query();
  media.addEventListener("change", listener);
  return () => media.removeEventListener("change", listener);
}

export function useDarkSystem(): boolean {
  return useSyncExternalStore(subscribe, () => query().matches);
}
