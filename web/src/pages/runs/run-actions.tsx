// Actions of a run: cancel, run again, compare, open its conversation.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { ApiError, get, path, post, type Page } from "@/api/client";
import { ENDED, type Agent, type EventAnswer, type Story } from "@/api/types";
import { useT } from "@/i18n";
import { Button, ButtonLink, Confirm, Field, Select, useToast } from "@/ui";

export function RunActions({ story }: { story: Story }) {
  const t = useT();
  const { run } = story;
  const isOpen = !ENDED.has(run.status);
  return (
    <>
      {run.conversation_id && (
        <ButtonLink href={`/chat/${encodeURIComponent(run.conversation_id)}`} icon="chat">
          {t("runs.show.conversation")}
        </ButtonLink>
      )}
      <Replay story={story} />
      {isOpen && <Cancel runId={run.run_id} />}
    </>
  );
}

function Cancel({ runId }: { runId: string }) {
  const t = useT();
  const toast = useToast();
  const queries = useQueryClient();
  const [asks, setAsks] = useState(false);
  const cancel = useMutation({
    mutationFn: () => post(path("/v1/runs/{}/cancel", runId)),
    onSuccess: () => {
      toast(t("runs.show.cancelled"));
      setAsks(false);
      return queries.invalidateQueries({ queryKey: ["run", runId] });
    },
    onError: (error) => toast(wordsOf(error), "bad"),
  });
  return (
    <>
      <Button variant="danger" icon="stop" onClick={() => setAsks(true)}>
        {t("runs.show.cancel")}
      </Button>
      <Confirm title={t("runs.show.cancelTitle")} open={asks} onOpenChange={setAsks} danger busy={cancel.isPending} confirm={t("runs.show.cancel")} cancel={t("runs.show.keep")} onConfirm={() => cancel.mutate()}>
        <p>{t("runs.show.cancelText")}</p>
      </Confirm>
    </>
  );
}

function Replay({ story }: { story: Story }) {
  const t = useT();
  const toast = useToast();
  const [, navigate] = useLocation();
  const { run } = story;
  const [asks, setAsks] = useState(false);
  const [agent, setAgent] = useState("");
  const agents = useQuery({ queryKey: ["agents"], queryFn: () => get<Page<Agent>>("/v1/agents"), enabled: asks, staleTime: 60_000 });
  const others = (agents.data?.items ?? []).map((one) => one.name).filter((name) => name !== run.agent);
  const replay = useMutation({
    mutationFn: () => post<EventAnswer>(path("/v1/runs/{}/replay", run.run_id), agent === "" ? {} : { agent }),
    onSuccess: (accepted) => {
      toast(t("runs.show.replayed"));
      setAsks(false);
      if (accepted.run_id) navigate(`/runs/${encodeURIComponent(accepted.run_id)}`);
    },
    onError: (error) => toast(wordsOf(error), "bad"),
  });
  return (
    <>
      <Button icon="refresh" onClick={() => setAsks(true)}>
        {t("runs.show.replay")}
      </Button>
      <Confirm title={t("runs.show.replayTitle")} open={asks} onOpenChange={setAsks} busy={replay.isPending} confirm={t("runs.show.replay")} onConfirm={() => replay.mutate()}>
        <div className="stack">
          <p>{t("runs.show.replayText")}</p>
          <Field label={t("runs.show.replayAgent")}>
            {(props) => (
              <Select {...props} value={agent} onChange={setAgent}
                options={[{ value: "", label: t("runs.show.replaySame", { agent: run.agent }) }, ...others.map((name) => ({ value: name, label: name }))]} />
            )}
          </Field>
        </div>
      </Confirm>
    </>
  );
}

function wordsOf(error: unknown): string {
  return error instanceof ApiError ? `${error.message} (${error.code})` : String(error);
}
