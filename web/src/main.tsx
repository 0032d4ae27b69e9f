// Entry point.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { addPrefix, BASE } from "./api/base";
import { ApiError } from "./api/client";
import { App } from "./app";
import { LanguageProvider } from "./i18n";
import "./theme/tokens.css";
import "./theme/base.css";
import { applyTheme, ThemeProvider } from "./theme/theme";
import { ToastProvider } from "./ui/toast";
import { TooltipProvider } from "./ui/tooltip";

addPrefix();
applyTheme();

/** Only temporary errors are retried. */
function shouldRetry(failures: number, error: Error): boolean {
  return failures < 2 && (!(error instanceof ApiError) || error.retryable);
}

const queries = new QueryClient({
  defaultOptions: {
    // A host on this machine responds without a network.
    queries: { staleTime: 5_000, retry: shouldRetry, refetchOnWindowFocus: true, networkMode: "always" },
    mutations: { networkMode: "always" },
  },
});

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no element `root`");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <LanguageProvider>
        <ThemeProvider>
          <TooltipProvider>
            <ToastProvider>
              <Router base={BASE}>
                <App />
              </Router>
            </ToastProvider>
          </TooltipProvider>
        </ThemeProvider>
      </LanguageProvider>
    </QueryClientProvider>
  </StrictMode>,
);
