// A database that is down is distinguished from a host that is down.
import { expect, test } from "vitest";
import { stateOf } from "./use-host-answers";

const refusal = (details: Record<string, string>) => JSON.stringify({ error: { code: "runtime_error", message: "", retryable: true, details } });

test("a 503 that names the database is no_database", () => {
  expect(stateOf(503, refusal({ not_ready: "database", reason: "database_unavailable" }))).toBe("no_database");
});

test("a host that is stopping or ready has a database", () => {
  expect(stateOf(503, refusal({ not_ready: "host" }))).toBe("well");
  expect(stateOf(200, '{"status":"ready"}')).toBe("well");
});
