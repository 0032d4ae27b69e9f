// The routes; each page is loaded when it is first opened.
import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, type ComponentType } from "react";
import { Route, Switch, useLocation } from "wouter";
import { inside } from "./api/base";
import { SIGNED_OUT } from "./api/client";
import { useT } from "./i18n";
import { Boundary } from "./shell/boundary";
import { Frame } from "./shell/frame";
import { SignedIn } from "./shell/signed-in";
import { ButtonLink, Empty, Page, Skeleton } from "./ui";

type Load = () => Promise<{ default: ComponentType }>;

/** In order: the first match is shown. */
const pages: [string, Load][] = [
  ["/", () => import("./pages/overview/index")],
  ["/chat/:conversation?", () => import("./pages/chat/index")],
  ["/runs", () => import("./pages/runs/list")],
  ["/runs/compare", () => import("./pages/runs/compare")],
  ["/runs/:id", () => import("./pages/runs/show")],
  ["/agents", () => import("./pages/agents/list")],
  ["/agents/:name", () => import("./pages/agents/show")],
  ["/runners", () => import("./pages/agents/runners")],
  ["/events", () => import("./pages/facts/events")],
  ["/events/:id", () => import("./pages/facts/event")],
  ["/deliveries", () => import("./pages/facts/deliveries")],
  ["/conversations", () => import("./pages/facts/conversations")],
  ["/artifacts", () => import("./pages/facts/artifacts")],
  ["/state", () => import("./pages/facts/state")],
  ["/audit", () => import("./pages/facts/audit")],
  ["/approvals", () => import("./pages/approvals/index")],
];
const routes = pages.map(([path, load]) => ({ path, component: lazy(load) }));
const SignIn = lazy(() => import("./pages/signin/index"));

export function App() {
  useSignInWhenSignedOut();
  return (
    <Switch>
      <Route path="/signin">
        <Suspense fallback={<Skeleton />}>
          <SignIn />
        </Suspense>
      </Route>
      <Route>
        <SignedIn>
          <Frame>
            <Boundary>
              <Suspense fallback={<Skeleton lines={6} />}>
                <Switch>
                  {routes.map(({ path, component }) => (
                    <Route key={path} path={path} component={component} />
                  ))}
                  <Route component={NotFound} />
                </Switch>
              </Suspense>
            </Boundary>
          </Frame>
        </SignedIn>
      </Route>
    </Switch>
  );
}

/** A 401 response leads to the sign-in page, and from there back. */
function useSignInWhenSignedOut(): void {
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  useEffect(() => {
    const onSignedOut = () => {
      const path = inside(window.location.pathname);
      if (path === "/signin") return;
      const here = path + window.location.search;
      // The sign-in page consumes a code in the fragment.
      const to = here === "/" ? "/signin" : `/signin?next=${encodeURIComponent(here)}`;
      queries.clear();
      navigate(to + window.location.hash, { replace: true });
    };
    window.addEventListener(SIGNED_OUT, onSignedOut);
    return () => window.removeEventListener(SIGNED_OUT, onSignedOut);
  }, [navigate, queries]);
}

function NotFound() {
  const t = useT();
  return (
    <Page title={t("shell.notFound")}>
      <Empty icon="search" title={t("shell.notFound")} action={<ButtonLink href="/">{t("shell.toOverview")}</ButtonLink>}>
        {t("shell.notFoundHint")}
      </Empty>
    </Page>
  );
}
