// Reading stops when enough items match, enough were read, or none can match.
import { expect, test } from "vitest";
import { enough } from "./scan";

const hundred = Array.from({ length: 100 }, (_, index) => index);

test("it reads more while too few match", () => {
  expect(enough([hundred], (item) => item % 10 === 0, 1)).toMatchObject({ ended: false, wantsMore: true });
});

test("it stops when enough match, and continues on request", () => {
  const pages = [hundred];
  expect(enough(pages, (item) => item % 2 === 0, 1).wantsMore).toBe(false);
  expect(enough(pages, (item) => item % 2 === 0, 2).wantsMore).toBe(true);
});

test("it stops after ten pages each time, however few match", () => {
  const pages = Array.from({ length: 10 }, () => [1]);
  expect(enough(pages, () => false, 1).wantsMore).toBe(false);
  expect(enough(pages, () => false, 2).wantsMore).toBe(true);
});

test("it stops where nothing later can match", () => {
  const result = enough([hundred, hundred], (item) => (item > 2 ? "end" : true), 1);
  expect(result).toEqual({ items: [0, 1, 2], ended: true, wantsMore: false });
});

test("short pages without a filter are continued, an unread list is not", () => {
  expect(enough([[1]], undefined, 1)).toEqual({ items: [1], ended: false, wantsMore: true });
  expect(enough([], undefined, 1).wantsMore).toBe(false);
});
