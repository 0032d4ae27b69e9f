// Subject and warning of an approval, the same in the inbox and the chat.
import type { Approval } from "@/api/types";
import { useLanguage, useT } from "@/i18n";
import { Badge, type Tone } from "@/ui";
import { harnessQuestion } from "@/ui/harness-call";
import { HarnessView } from "@/ui/harness-view";
import { ApprovalInput } from "./approval-input";
import styles from "./approvals.module.css";
import { approvalRisk, isHarness, type Risk } from "./sentence";
import { subjectLines } from "./subject";

const TONES: Record<Risk, Tone> = { read: "neutral", write: "info", destructive: "bad", external: "warn" };

export function ApprovalAbout({ approval }: { approval: Approval }) {
  const { t, language } = useLanguage();
  const { subject } = approval;
  if (!subject) return <ApprovalInput approval={approval} />;
  if (isHarness(approval)) return <HarnessView call={harnessQuestion(approval)} />;
  return (
    <ul className={styles["subject"]} data-kind="subject">
      {subjectLines(t, language, subject).map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

export function ApprovalWarning({ approval }: { approval: Approval }) {
  const t = useT();
  const risk = approvalRisk(approval);
  // What it shows says what it does; how far it reaches is the sandbox's.
  if (isHarness(approval)) return null;
  return (
    <p className={styles["warning"]} data-kind="warning">
      <Badge tone={TONES[risk]}>{t(`approvals.risk_label_${risk}`)}</Badge> {t(`approvals.risk_${risk}`)}
    </p>
  );
}
