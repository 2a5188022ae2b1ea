/** What a page downloads: the core entry needs nothing else, and stays small. */
import { expect, test } from "vitest";
import { bundle, everythingOf, weigh } from "../support/bundle.ts";
import { readEntries } from "../support/package.ts";

/** Bytes, minified and gzipped: the size of the smallest loop of others, which has neither log nor storage. */
const LIMIT = 20_000;

test("the core entry imports nothing once it is built", async () => {
  const [core] = readEntries();
  const chunks = await bundle(everythingOf(core!.source));
  expect(chunks[0]?.code).toContain("createHarness");
  expect(chunks.flatMap((chunk) => chunk.imports)).toEqual([]);
});

test("the loop keeps within its size", async () => {
  const [loop] = await weigh();
  expect(loop?.what).toBe("createHarness");
  expect(loop?.gzipped).toBeLessThan(LIMIT);
});
