/** What a page downloads: the core entry needs nothing else, and all stay as small as they are. */
import { expect, test } from "vitest";
import { bundle, everythingOf, weigh } from "../support/bundle.ts";
import { readEntries } from "../support/package.ts";

/**
 * Bytes, minified and gzipped, so that whatever makes an entry heavier is seen. Each is without the core and its
 * vendor. The goal for the loop is 20,000, and this is far from it: it says what it weighs today.
 */
const LIMITS: Readonly<Record<string, number>> = {
  createHarness: 36_200,
  turnloop: 57_500,
  "turnloop/testing": 10_500,
  "turnloop/ai-sdk": 9200,
  "turnloop/mcp": 4900,
  "turnloop/otel": 2400,
  "turnloop/react": 1000,
  "turnloop/inspector": 6400,
  "turnloop/ai-sdk-ui": 6200,
  "turnloop/indexeddb": 8900,
  "turnloop/sql": 5800,
  "turnloop/node-sqlite": 6400,
  "turnloop/durable-object": 14_900,
  "turnloop/node": 9800,
  "turnloop/tabs": 13_400,
  "turnloop/transport": 14_100,
};

test("the core entry imports nothing once it is built", async () => {
  const [core] = readEntries();
  const chunks = await bundle(everythingOf(core!.source));
  expect(chunks[0]?.code).toContain("createHarness");
  expect(chunks.flatMap((chunk) => chunk.imports)).toEqual([]);
});

test("no entry grows beyond its budget", async () => {
  const weights = await weigh();
  expect(weights.map(({ what }) => what)).toEqual(Object.keys(LIMITS));
  for (const { what, gzipped } of weights) expect(gzipped, what).toBeLessThan(LIMITS[what]!);
});
