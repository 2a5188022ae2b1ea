/** The policies that an agent should not be without. */
import type { Plugin } from "../core.ts";
import { budget } from "./budget.ts";
import { compaction } from "./compaction.ts";
import { outputTool } from "./output-tool.ts";
import { retry } from "./retry.ts";
import { stallLimits } from "./stall-limits.ts";
import { together } from "./together.ts";

export interface StandardOptions {
  /** Of a turn. Default 50. */
  maxSteps?: number;
}

/**
 * What a newcomer should use: requests that failed for a reason that passes are tried again (`retry`), a turn ends
 * after 50 steps (`budget`), a model that falls silent is given up (`stallLimits`), a history that grows too long for
 * the model is made shorter (`compaction`), and a model that says that it cannot answer in JSON of a schema does so by a
 * tool (`outputTool`). Each is a plugin of its own, for those who want other numbers. Throws INVALID_OPTIONS.
 */
export function standard({ maxSteps = 50 }: StandardOptions = {}): Plugin {
  const parts = [retry(), budget({ steps: maxSteps }), stallLimits(), compaction(), outputTool()];
  return (scope) => together(...parts.map((part) => scope.use(part)));
}
