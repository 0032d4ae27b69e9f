// The input of an action: text as text, few values as a list, anything else as JSON.
import type { Approval, Json } from "@/api/types";
import { Facts, JsonView } from "@/ui";
import { approvalInput } from "./sentence";
import styles from "./approvals.module.css";

const LISTED_UP_TO = 8;

export function ApprovalInput({ approval }: { approval: Approval }) {
  const input = approvalInput(approval);
  const entries = Object.entries(input);
  const [only] = entries;
  if (!only) return null;
  if (entries.length === 1 && only[0] === "text" && typeof only[1] === "string") {
    return <blockquote className={styles["quote"]}>{only[1]}</blockquote>;
  }
  if (entries.length > LISTED_UP_TO || !entries.every(([, value]) => isPlain(value))) return <JsonView value={input} />;
  return (
    <div className={styles["input"]}>
      <Facts items={entries.map(([name, value]) => [name, <code key={name}>{String(value)}</code>])} />
    </div>
  );
}

function isPlain(value: Json): boolean {
  return value === null || typeof value !== "object";
}
