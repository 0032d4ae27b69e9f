// The subject of an approval, by the titles of its records.
import type { ApprovalSubject } from "../../api/types";
import type { Key, Language, T } from "../../i18n";
import { rangeText } from "../../ui/format-text";

type SubjectRecord = NonNullable<ApprovalSubject["records"]>[number];
type SubjectField = NonNullable<ApprovalSubject["fields"]>[number];

/** Inputs of the built-in methods that have labels. */
const NAMED = ["title", "start_at", "end_at", "timezone", "location", "notes", "with"] as const;
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/** A line per record, then per input; times in the browser's time zone. */
export function subjectLines(t: T, language: Language, subject: ApprovalSubject, timeZone?: string): string[] {
  const lines = [
    ...(subject.records ?? []).map((record) => recordLine(t, language, record, timeZone)),
    ...(subject.fields ?? []).map((field) => fieldLine(t, language, field, timeZone)),
  ];
  return subject.left_out ? [...lines, t("approvals.subject_more", { count: subject.left_out })] : lines;
}

function recordLine(t: T, language: Language, record: SubjectRecord, timeZone?: string): string {
  if (record.title == null) return t("approvals.subject_missing", { id: record.id });
  const title = t("approvals.subject_title", { title: record.title });
  const named = record.detail == null ? title : t("approvals.subject_pair", { name: title, value: record.detail });
  if (record.start_at == null) return named;
  return t("approvals.subject_when", { title: named, when: rangeText(record.start_at, record.end_at ?? undefined, language, timeZone) });
}

function fieldLine(t: T, language: Language, field: SubjectField, timeZone?: string): string {
  const said = (value: string) => (MOMENT.test(value) ? rangeText(value, undefined, language, timeZone) : value);
  const name = NAMED.find((known) => known === field.name);
  const value = field.before == null ? said(field.value) : `${said(field.before)} → ${said(field.value)}`;
  return t("approvals.subject_pair", { name: name ? t(`approvals.field_${name}` satisfies Key) : field.name, value });
}
