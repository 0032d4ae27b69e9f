// Ids are random UUIDs (version 4).
import { expect, test } from "vitest";
import { newId } from "./new-id";

test("an id is a UUID of version 4", () => {
  for (let times = 0; times < 64; times += 1) {
    expect(newId()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
});

test("no two are the same", () => {
  expect(new Set(Array.from({ length: 256 }, newId)).size).toBe(256);
});
