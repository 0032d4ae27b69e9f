// Light or dark theme: the system's unless chosen, stored in the browser.
import { createContext, useContext, useMemo, useState, type ReactNode } from "react";

export type Theme = "system" | "light" | "dark";
const STORED = "greenroom.theme";

function stored(): Theme {
  const value = localStorage.getItem(STORED);
  return value === "light" || value === "dark" ? value : "system";
}

/** Called before the first paint, so that the page does not flash in the other theme. */
export function applyTheme(theme: Theme = stored()): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

const Context = createContext<{ theme: Theme; setTheme: (theme: Theme) => void } | null>(null);

export function ThemeProvider({ children }: { children: ReactNode }) {
  const [theme, choose] = useState<Theme>(stored);
  const value = useMemo(
    () => ({
      theme,
      setTheme: (next: Theme) => {
        localStorage.setItem(STORED, next);
        applyTheme(next);
        choose(next);
      },
    }),
    [theme],
  );
  return <Context.Provider value={value}>{children}</Context.Provider>;
}

export function useTheme() {
  const value = useContext(Context);
  if (!value) throw new Error("there is no ThemeProvider above");
  return value;
}
