/** After each test, in every project that runs the loop: what must always hold is looked at. */
import { settleTest } from "./turnloop.ts";
import { afterEach, expect } from "vitest";

afterEach(async () => {
  expect(await settleTest(), "promises that hold for every session").toEqual([]);
});
