// Status of the store, models, tool servers and runners.
import { useMutation, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { hostUrl } from "@/api/base";
import { ApiError, get, path, post, type Page } from "@/api/client";
import type { ModelFigures, Overview, Runner, ToolServer } from "@/api/types";
import { useT } from "@/i18n";
import { Badge, Bytes, Button, Card, Loaded, Skeleton, StatusBadge, Time, useToast } from "@/ui";
import { modelStatus } from "./problem-list";
import styles from "./overview.module.css";

const EVERY_MS = 10_000;

export function useRunners() {
  return useQuery({ queryKey: ["runners"], queryFn: ({ signal }) => get<Page<Runner>>("/v1/runners", {}, signal), refetchInterval: EVERY_MS });
}

export function useToolServers() {
  const queryFn = ({ signal }: { signal: AbortSignal }) => get<Page<ToolServer>>("/v1/tool-servers", {}, signal);
  return useQuery({ queryKey: ["tool-servers"], queryFn, refetchInterval: EVERY_MS });
}

export function Health({ overview }: { overview: Overview }) {
  const t = useT();
  const runners = useRunners();
  const servers = useToolServers();
  return (
    <section className={styles["health"]} aria-label={t("overview.health")}>
      <Card title={t("overview.models")} flush>
        <Parts empty={t("overview.models_empty")} items={overview.models.map((model) => <Model key={model.name} model={model} />)} />
      </Card>
      <Card title={t("overview.runners")} flush>
        <Loaded query={runners} skeleton={<Skeleton lines={3} />}>
          {({ items }) => <Parts empty={t("overview.runners_empty")} items={items.map((runner) => <RunnerPart key={runner.name} runner={runner} />)} />}
        </Loaded>
      </Card>
      <Card title={t("overview.servers")} flush>
        <Loaded query={servers} skeleton={<Skeleton lines={3} />}>
          {({ items }) => <Parts empty={t("overview.servers_empty")} items={items.map((server) => <ServerPart key={server.name} server={server} />)} />}
        </Loaded>
      </Card>
      <Card title={t("overview.store")} flush>
        <Parts empty="" items={[<StorePart key="store" overview={overview} />]} />
      </Card>
    </section>
  );
}

function Parts({ items, empty }: { items: ReactNode[]; empty: string }) {
  if (items.length === 0) return <p className={styles["nothing"]}>{empty}</p>;
  return <ul className={styles["parts"]}>{items}</ul>;
}

function Part({ name, status, note, problem }: { name: ReactNode; status: ReactNode; note: ReactNode; problem?: string | null | undefined }) {
  return (
    <li>
      <div className={styles["part"]}>
        <span className={styles["partName"]}>{name}</span>
        {status}
      </div>
      <div className={styles["partNote"]}>{note}</div>
      {problem && (
        <div className={styles["partProblem"]} title={problem}>
          {problem}
        </div>
      )}
    </li>
  );
}

function StorePart({ overview: { store } }: { overview: Overview }) {
  const t = useT();
  const kind = store.kind === "sqlite" ? "SQLite" : "PostgreSQL";
  const sync = store.sync === "full" ? t("overview.store_sync_full") : store.sync === "normal" ? t("overview.store_sync_normal") : null;
  return (
    <Part
      name={kind}
      status={<Badge tone={store.ok ? "ok" : "bad"}>{t(store.ok ? "overview.store_ok" : "overview.store_down")}</Badge>}
      note={
        <>
          <Bytes value={store.size_bytes} />
          {sync && ` · ${sync}`}
        </>
      }
    />
  );
}

const MODEL_TONES = { ok: "ok", failing: "bad", idle: "neutral" } as const;

function Model({ model }: { model: ModelFigures }) {
  const t = useT();
  const status = modelStatus(model);
  const word = status === "ok" ? t("overview.status_ok") : status === "failing" ? t("overview.status_error") : t("overview.status_idle");
  const notes = [
    model.provider,
    model.calls ? t("overview.model_calls", { count: model.calls }) : t("overview.model_idle"),
    model.failed ? t("overview.model_failed", { count: model.failed }) : null,
    model.configured ? null : t("overview.model_removed"),
  ];
  return (
    <Part
      name={model.name}
      status={<Badge tone={MODEL_TONES[status]}>{word}</Badge>}
      note={
        <>
          {notes.filter(Boolean).join(" · ")}
          {model.last_error && (
            <>
              {" · "}
              <code>{model.last_error.code}</code> <Time at={model.last_error.at} />
            </>
          )}
        </>
      }
    />
  );
}

function RunnerPart({ runner }: { runner: Runner }) {
  const t = useT();
  const restarts = runner.restarts ?? 0;
  const notes = [runner.plugin, restarts > 0 ? t("overview.restarts", { count: restarts }) : null, runner.isolation];
  return (
    <Part
      name={<Link href="/runners">{runner.name}</Link>}
      status={<StatusBadge status={runner.status ?? "unknown"} />}
      note={notes.filter(Boolean).join(" · ")}
      problem={runner.last_error}
    />
  );
}

function ServerPart({ server }: { server: ToolServer }) {
  const t = useT();
  const notes = [
    server.kind === "module" ? t("overview.server_builtin") : "MCP",
    t("overview.server_tools", { count: server.tools }),
    server.restarts > 0 ? t("overview.restarts", { count: server.restarts }) : null,
  ];
  return (
    <Part
      name={server.name}
      status={<StatusBadge status={server.status} />}
      note={
        <>
          {notes.filter(Boolean).join(" · ")}
          {server.sign_in === "required" && <SignIn server={server.name} />}
        </>
      }
      problem={server.status === "ready" ? server.warnings[0] : (server.last_error ?? server.warnings[0])}
    />
  );
}

/** Leads to the server's own sign-in, which ends with a redirect to the host. */
function SignIn({ server }: { server: string }) {
  const t = useT();
  const toast = useToast();
  const begin = useMutation({
    mutationFn: () => {
      const redirect_uri = new URL(hostUrl("/oauth/callback"), window.location.origin).href;
      return post<{ url: string }>(path("/v1/tool-servers/{}/sign-in", server), { redirect_uri });
    },
    onSuccess: ({ url }) => {
      if (/^https?:\/\//.test(url)) window.location.assign(url);
    },
    onError: (error) => toast(`${t("overview.sign_in_failed")}: ${error instanceof ApiError ? error.message : String(error)}`, "bad"),
  });
  return (
    <>
      {" · "}
      <Button variant="secondary" busy={begin.isPending} onClick={() => begin.mutate()}>
        {t("overview.sign_in")}
      </Button>
    </>
  );
}
