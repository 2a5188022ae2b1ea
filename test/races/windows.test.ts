/** How much the matrix holds. */
import { expect, test } from "vitest";
import { ACTIONS, pairsOf } from "./actions.ts";
import { WINDOWS } from "./windows.ts";

test("every window has a name of its own, and every action comes up", () => {
  const cases = WINDOWS.flatMap(pairsOf);
  const pairs = WINDOWS.reduce((sum, window) => sum + new Set(pairsOf(window).map(({ action }) => action)).size, 0);
  console.log(`${WINDOWS.length} windows, ${pairs} pairs of window and action, ${cases.length} with their forms`);
  expect(new Set(WINDOWS.map(({ name }) => name)).size).toBe(WINDOWS.length);
  expect(new Set(cases.map(({ action }) => action))).toEqual(new Set(ACTIONS));
});
