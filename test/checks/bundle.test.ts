/** What a page downloads: the core entry needs nothing else, and stays small. */
import { expect, test } from "vitest";
import { bundle, everythingOf, weigh } from "../support/bundle.ts";
import { readEntries } from "../support/package.ts";

/**
 * Bytes, minified and gzipped. The goal is 20,000, and this is far from it: it says what the loop weighs today with
 * leases, resumed turns and summaries, so that whatever makes it heavier is seen.
 */
const LIMIT = 36_200;

test("the core entry imports nothing once it is built", async () => {
  const [core] = readEntries();
  const chunks = await bundle(everythingOf(core!.source));
  expect(chunks[0]?.code).toContain("createHarness");
  expect(chunks.flatMap((chunk) => chunk.imports)).toEqual([]);
});

test("the loop grows no further", async () => {
  const [loop] = await weigh();
  expect(loop?.what).toBe("createHarness");
  expect(loop?.gzipped).toBeLessThan(LIMIT);
});
