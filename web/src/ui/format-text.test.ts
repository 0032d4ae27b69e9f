// Formatted values.
import { expect, test } from "vitest";
import { bytesText, durationText, moneyText, relativeText } from "./format-text";

const NOW = Date.UTC(2026, 5, 15, 12, 0, 0);

test("recent times are relative, old ones are dates", () => {
  expect(relativeText(NOW - 3_000, NOW, "en")).toBe("now");
  expect(relativeText(NOW - 5 * 60_000, NOW, "en")).toBe("5 min. ago");
  expect(relativeText(NOW - 5 * 60_000, NOW, "zh")).toBe("5分钟前");
  expect(relativeText(NOW - 30 * 86_400_000, NOW, "en")).toBe("May 16");
});

test("durations use a precision that fits their size", () => {
  expect(durationText(0.25, "en")).toBe("0.25 ms");
  expect(durationText(1234, "en")).toBe("1.23 s");
  expect(durationText(61_000, "en")).toBe("1 min 1 s");
});

test("sizes are in powers of 1024", () => {
  expect(bytesText(1023, "en")).toBe("1,023 B");
  expect(bytesText(1536, "en")).toBe("1.5 KiB");
});

test("small sums of money do not become zero", () => {
  expect(moneyText(0.000412, "USD", "en")).toBe("$0.000412");
  expect(moneyText(12.5, "USD", "en")).toBe("$12.50");
});
