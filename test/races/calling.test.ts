/** Windows of the loop, and all that may happen in them. */
import { describe, expect, test } from "vitest";
import { pairsOf } from "./actions.ts";
import { race } from "./race.ts";
import { CALLING } from "./windows.ts";

describe.each(CALLING)("in $name", (window) => {
  test.each(pairsOf(window))("$action, $form", async ({ action, form }) => {
    const broken = await race(window, action, form);
    expect(broken.length, broken.join("; ")).toBe(0);
  });
});
