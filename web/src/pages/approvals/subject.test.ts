// The subject lines of an approval.
import { expect, test } from "vitest";
import { translate, type Language, type T } from "../../i18n";
import { subjectLines } from "./subject";

const inLanguage = (language: Language): T => (key, values) => translate(language, key, values);
const lines = (language: Language, subject: Parameters<typeof subjectLines>[2]) =>
  subjectLines(inLanguage(language), language, subject, "Asia/Shanghai").map((line) => line.replace(/[\u2009\u202f]/g, " "));

const dinner = { id: "rec_1", title: "dinner", start_at: "2026-04-21T11:00:00Z", end_at: "2026-04-21T12:00:00Z" };

test("a record is named by its title and its local time", () => {
  const [english] = lines("en", { records: [dinner] });
  expect(english).toMatch(/^“dinner”, Tue, Apr 21, 2026, 7:00 – 8:00 PM$/);
  const [chinese] = lines("zh", { records: [dinner] });
  expect(chinese).toMatch(/^“dinner”，.*周二 ?19:00–20:00$/);
});

test("a record that the user does not have is reported as missing", () => {
  expect(lines("en", { records: [{ id: "rec_9" }] })).toEqual(["There is no record with the id rec_9"]);
});

test("inputs show the current and the new value", () => {
  const subject = {
    records: [{ id: "tea", title: "tea", detail: "green" }],
    fields: [{ name: "title", value: "supper", before: "dinner" }, { name: "to", value: "bob" }],
    left_out: 3,
  };
  expect(lines("en", subject)).toEqual(["“tea”: green", "Title: dinner → supper", "to: bob", "and 3 more"]);
  expect(lines("zh", subject)).toEqual(["“tea”：green", "标题：dinner → supper", "to：bob", "还有 3 项"]);
});
