// Filters applied by the host and filters applied here.
import { expect, test } from "vitest";
import type { AuditRecord } from "../../api/types";
import { auditMatches, auditQuery } from "./audit-filters";

const record: AuditRecord = {
  agent: "Helper",
  runner: "helper-runner",
  plugin: "acme/helper",
  method: "state.get",
  code: "ok",
  bytes_in: 1,
  bytes_out: 1,
  duration_us: 1,
  at: "2026-11-15T15:00:00.000Z",
};
const now = Date.parse("2026-11-15T15:30:00.000Z");

test("all refusals are one filter of the host, a single code another", () => {
  expect(auditQuery({ outcome: "denied", run_id: "run_1" })).toEqual({ run_id: "run_1", method: undefined, denied: true });
  expect(auditQuery({ outcome: "not_found" })).toMatchObject({ code: "not_found" });
});

test("nothing is filtered here if the host does it all", () => {
  expect(auditMatches({ run_id: "run_1", method: "state.get", outcome: "ok" }, now)).toBeUndefined();
});

test("agent, runner and plugin are found by a part of their name, whatever the case", () => {
  expect(auditMatches({ who: "HELP" }, now)?.(record)).toBe(true);
  expect(auditMatches({ who: "acme/" }, now)?.(record)).toBe(true);
  expect(auditMatches({ who: "other" }, now)?.(record)).toBe(false);
  expect(auditMatches({ who: "help" }, now)?.({ ...record, agent: null })).toBe(true);
});

test("a call from before the span does not match, one from long before ends the list", () => {
  const fits = auditMatches({ time: "1h" }, now);
  expect(fits?.(record)).toBe(true);
  expect(fits?.({ ...record, at: "2026-11-15T14:29:59.999Z" })).toBe(false);
  expect(fits?.({ ...record, at: "2026-11-14T14:29:59.999Z" })).toBe("end");
});

test("an unknown span is no filter", () => {
  expect(auditMatches({ time: "constructor" }, now)).toBeUndefined();
});
