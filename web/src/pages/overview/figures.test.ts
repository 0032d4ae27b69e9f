// Numbers stay honest when they get short.
import { expect, test } from "vitest";
import { compactText, percentText, rateText } from "./figures";

test("large numbers are short in each language", () => {
  expect([compactText(1_234_567, "en"), compactText(1_234_567, "zh"), compactText(950, "en")]).toEqual(["1.2M", "123.5万", "950"]);
});

test("small shares and rates are not shown as zero", () => {
  expect([percentText(0.0012, "en"), percentText(0.034, "en"), percentText(0.5, "en")]).toEqual(["0.12%", "3.4%", "50%"]);
  expect([rateText(0.0167, "en"), rateText(12.345, "en"), rateText(0, "en")]).toEqual(["0.017", "12.3", "0"]);
});
