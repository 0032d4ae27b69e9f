// Announces start, answers and approvals to screen readers.
import { useEffect, useRef, useState } from "react";
import { useT } from "@/i18n";
import type { ThreadView } from "./thread";

const TOLD_CHARS = 400;

export function Announcer({ view }: { view: ThreadView }) {
  const t = useT();
  const [words, setWords] = useState("");
  const before = useRef("");
  const run = view.active.at(-1);
  const status = run ? (run.status === "waiting" ? "waiting" : "working") : "idle";
  useEffect(() => {
    const was = before.current;
    before.current = status;
    if (!was || was === status) return;
    if (status === "working") setWords(t("chat.working", { agent: run?.agent ?? "" }));
    else if (status === "waiting") setWords(t("chat.approvalTitle", { agent: run?.agent ?? "" }));
    else {
      const answer = view.entries.findLast((entry) => entry.kind === "answer" || entry.kind === "error" || entry.kind === "notice");
      if (answer?.kind === "answer") setWords(t("chat.answerDone", { text: answer.text.slice(0, TOLD_CHARS) }));
      else if (answer?.kind === "error") setWords(t("chat.errorTitle"));
      else if (answer) setWords(t("chat.cancelled"));
    }
  }, [status, run, t, view]);
  return (
    <div className="visually-hidden" role="status" aria-live="polite">
      {words}
    </div>
  );
}
