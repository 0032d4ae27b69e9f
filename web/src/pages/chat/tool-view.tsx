// A tool call: name, status, arguments, result and card.
import { lazy, Suspense, useState } from "react";
import { useT } from "@/i18n";
import { explainTool } from "@/pages/runs/logic/explain";
import { said } from "@/pages/runs/logic/say";
import { Icon, JsonView, Skeleton } from "@/ui";
import { useChat } from "./chat-context";
import { textOr, type ToolEntry } from "./entry";
import { harnessCall } from "@/ui/harness-call";
import { HarnessView } from "@/ui/harness-view";
import styles from "./tool.module.css";
import { toolInput, toolLabel } from "./tool-output";

const CardSurface = lazy(() => import("./cards/surface"));
const states = { running: "chat.toolRunning", done: "chat.toolDone", failed: "chat.toolFailed", stopped: "chat.toolStopped" } as const;

export function ToolView({ entry }: { entry: ToolEntry }) {
  const t = useT();
  const { cardAction } = useChat();
  const [open, setOpen] = useState(false);
  const label = toolLabel(entry.name, entry.args);
  const call = harnessCall(entry);
  return (
    <div className={styles["tool"]} data-kind="tool" data-state={entry.state}>
      <button type="button" className={styles["head"]} aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className={`${styles["mark"]} ${styles[entry.state]}`}>
          <Icon name={entry.state === "done" ? "check" : entry.state === "failed" ? "close" : "tool"} size={14} />
        </span>
        <span className={styles["name"]}>{label}</span>
        <span className={styles["brief"]}>{call?.title ?? brief(entry)}</span>
        <span className={styles["state"]}>{t(states[entry.state])}</span>
        <span className={open ? styles["opened"] : styles["closed"]}>
          <Icon name="chevronRight" size={16} />
        </span>
      </button>
      {open && (call ? <div className={styles["details"]}><HarnessView call={call} /></div> : <Details entry={entry} />)}
      {!open && call !== null && call.changes.length > 0 && <div className={styles["details"]}><HarnessView call={{ ...call, command: null, output: null, paths: [] }} /></div>}
      {entry.state === "failed" && !open && !isDenied(entry, label) && <Failure entry={entry} label={label} />}
      {entry.card && (
        <div className={styles["card"]}>
          <Suspense fallback={<Skeleton lines={3} />}>
            <CardSurface label={t("chat.card", { tool: label })} operations={entry.card} onAction={cardAction} />
          </Suspense>
        </div>
      )}
    </div>
  );
}

function Details({ entry }: { entry: ToolEntry }) {
  const t = useT();
  return (
    <div className={styles["details"]}>
      <div className={styles["label"]}>{t("chat.toolArguments")}</div>
      <JsonView value={toolInput(entry.args)} />
      {entry.error && (
        <>
          <div className={styles["label"]}>{t("chat.toolError")}</div>
          <Failure entry={entry} label={toolLabel(entry.name, entry.args)} />
          <JsonView value={entry.error} />
        </>
      )}
      <div className={styles["label"]}>{t("chat.toolResult")}</div>
      {entry.result === null ? <p className="muted">{t("chat.toolNoResult")}</p> : <Result text={entry.result} />}
    </div>
  );
}

/** JSON as a tree, anything else as text. */
function Result({ text }: { text: string }) {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return <pre className={styles["text"]}>{text}</pre>;
  }
  return typeof value === "string" ? <pre className={styles["text"]}>{value}</pre> : <JsonView value={value} />;
}

/** The approval is already shown beside the call. */
function isDenied(entry: ToolEntry, label: string): boolean {
  return explainTool(entry.error ?? {}, label, "").what.key === "runs.tool.DENIED.what";
}

function Failure({ entry, label }: { entry: ToolEntry; label: string }) {
  const t = useT();
  const code = textOr(entry.error?.["code"], undefined);
  const { agent } = useChat();
  const { what, todo } = explainTool(entry.error ?? {}, label, agent);
  return (
    <p className={styles["failure"]}>
      {said(t, what)} {said(t, todo)} {textOr(entry.error?.["message"], "")} {code && <code>{code}</code>}
    </p>
  );
}

/** The first arguments in one line. */
function brief(entry: ToolEntry): string {
  const input = toolInput(entry.args);
  if (typeof input !== "object" || input === null) return input === null ? "" : String(input);
  const parts = Object.entries(input).map(([key, value]) => `${key}: ${typeof value === "object" ? "…" : String(value)}`);
  return parts.join(", ").slice(0, 160);
}
