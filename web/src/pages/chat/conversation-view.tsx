// One conversation: entries and composer.
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { path, post } from "@/api/client";
import type { Agent } from "@/api/types";
import { useT } from "@/i18n";
import { Confirm, IconButton, IconLink, Select, useToast } from "@/ui";
import { Announcer } from "./announcer";
import { pressOf, type CardAction } from "./cards/action";
import { ChatContext, type ChatActions } from "./chat-context";
import styles from "./chat.module.css";
import { Composer } from "./composer";
import { drafts } from "./drafts";
import type { FileRef } from "./entry";
import { MessageList } from "./message-list";
import { useAgentChoice } from "./use-agent-choice";
import { useThread } from "./use-thread";
import { Welcome } from "./welcome";

export interface ConversationViewProps {
  id: string;
  isNew: boolean;
  agents: Agent[];
  /** The entry to show first. */
  target: string | null;
  /** False for readers. */
  mayWrite: boolean;
  /** Whether the session may see approvals. */
  showsApprovals: boolean;
  /** Opens the list of conversations, if there is one. */
  onPanel: (() => void) | null;
}

const hints = {
  steer: "chat.queueSteer",
  serial: "chat.queueSerial",
  parallel: "chat.queueParallel",
  replace: "chat.queueReplace",
} as const;

export function ConversationView({ id, isNew, agents, target, mayWrite, showsApprovals, onPanel }: ConversationViewProps) {
  const t = useT();
  const toast = useToast();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const { thread, view } = useThread(id, isNew, { follows: mayWrite, showsApprovals });
  const [agent, choose] = useAgentChoice(agents, view.recentAgents);
  const [text, setText] = useState(() => drafts.get(id));
  const [stopping, setStopping] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const active = view.active.filter((run) => run.agent === agent.name);
  const waits = active.some((run) => run.status === "waiting");

  useEffect(() => {
    // On phones the keyboard would cover the entries.
    if (window.matchMedia("(hover: hover)").matches) field.current?.focus();
  }, []);
  useEffect(() => drafts.set(id, text), [id, text]);
  // Runs that start or end here change the list of conversations.
  useEffect(() => {
    void queries.invalidateQueries({ queryKey: ["conversations"] });
  }, [queries, view.active.length]);
  // Approvals here change the count of pending ones.
  const asking = view.active.filter((run) => run.status === "waiting").length;
  useEffect(() => {
    void queries.invalidateQueries({ queryKey: ["approvals"] });
  }, [queries, asking]);

  const write = useCallback((more: string) => {
    setText((now) => (now.trim() ? `${now.trimEnd()}\n${more}` : more));
    field.current?.focus();
  }, []);
  const send = (message: string, files: FileRef[]) => {
    thread.send(agent.name, message, files);
    if (isNew) navigate(`/chat/${encodeURIComponent(id)}`, { replace: true });
    field.current?.focus();
  };
  const stop = () => {
    setStopping(false);
    for (const run of view.active) {
      if (run.hostRunId) post(path("/v1/runs/{}/cancel", run.hostRunId)).catch(() => toast(t("chat.stopFailed"), "bad"));
    }
  };
  const actions = useMemo<ChatActions>(
    () => ({
      agent: agent.name,
      decide: (runId, approvalId, approved, values) => {
        thread.view().active.find((run) => run.hostRunId === runId)?.decide(approvalId, approved, values ?? null);
        field.current?.focus();
      },
      cardAction: (action: CardAction) => {
        const press = pressOf(action);
        if (press === null) return toast(t("chat.cardActionUnknown"), "bad");
        thread.press(agent.name, press);
      },
      answered: (runId, answer) => thread.answered(runId, answer),
      write,
    }),
    [agent.name, t, thread, toast, write],
  );
  const hint = !mayWrite ? t("chat.readOnly") : waits ? t("chat.answerFirst", { agent: agent.name }) : active.length > 0 ? t(hints[agent.queue], { agent: agent.name }) : null;
  const isEmpty = !view.loading && !view.error && view.entries.length === 0;

  return (
    <ChatContext.Provider value={actions}>
      <header className={styles["head"]}>
        {onPanel && (
          <span className={styles["toggle"]}>
            <IconButton icon="panel" label={t("chat.openConversations")} onClick={onPanel} />
          </span>
        )}
        <h1 className="visually-hidden">{t("chat.title")}</h1>
        <Select
          className={styles["agent"] ?? ""}
          aria-label={t("chat.agent")}
          value={agent.name}
          onChange={choose}
          options={agents.map((one) => ({
            value: one.name,
            label: one.runner_available ? one.name : `${one.name} (${t("chat.agentMissing")})`,
          }))}
        />
        <div className="spacer" />
        {!onPanel && !isNew && <IconLink href="/chat" icon="plus" label={t("chat.newConversation")} />}
      </header>
      {isEmpty ? <Welcome agent={agent} onPick={mayWrite ? (example) => send(example, []) : null} /> : <MessageList thread={thread} view={view} target={target} />}
      <Composer
        agent={agent.name}
        text={text}
        onText={setText}
        onSend={send}
        running={mayWrite && view.active.length > 0}
        onStop={() => setStopping(true)}
        hint={hint}
        disabled={view.loading || !mayWrite}
        inputRef={field}
      />
      <Announcer view={view} />
      <Confirm
        title={t("chat.stopTitle")}
        open={stopping}
        onOpenChange={setStopping}
        confirm={t("chat.stopConfirm")}
        cancel={t("chat.stopKeep")}
        onConfirm={stop}
        danger
      >
        {t("chat.stopText")}
      </Confirm>
    </ChatContext.Provider>
  );
}
