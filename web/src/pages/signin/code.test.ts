// What is taken from the address.
import { expect, test } from "vitest";
import { codeIn, nextIn } from "./code";

test("the code is read from the fragment only", () => {
  expect([codeIn("#code=abc123"), codeIn("#a=1&code=x%20y"), codeIn("#code="), codeIn(""), codeIn("#other")]).toEqual(["abc123", "x y", null, null, null]);
});

test.each([
  ["?next=%2Fruns%2Frun_1%3Fa%3Db", "/runs/run_1?a=b"],
  ["?next=https%3A%2F%2Fevil.example", "/"],
  ["?next=%2F%2Fevil.example", "/"],
  ["?next=%2F%5Cevil.example", "/"],
  ["?next=%2F%09%2Fevil.example", "/"],
  ["?next=javascript%3Aalert(1)", "/"],
  ["?next=%2Fsignin%3Fnext%3D%2F", "/"],
  ["", "/"],
])("%s leads to %s", (search, place) => {
  expect(nextIn(search)).toBe(place);
});
