/** One concept a file: at 300 lines it is two. */
import { expect, test } from "vitest";
import { readSources } from "../support/package.ts";

test("no source is longer than 300 lines", () => {
  const sources = [...readSources()];
  expect(sources.length).toBeGreaterThan(0);
  const long = sources
    .map(([file, text]) => [file, text.split("\n").length - 1] as const)
    .filter(([, lines]) => lines > 300);
  expect(long).toEqual([]);
});
