/** All that is measured. */
import { cancel } from "./scenarios/cancel.ts";
import { memory } from "./scenarios/memory.ts";
import { resume } from "./scenarios/resume.ts";
import { start } from "./scenarios/start.ts";
import { stream, tools } from "./scenarios/turns.ts";
import type { Setting, Side } from "./side.ts";
import type { Figure } from "./timing.ts";

export interface Scenario {
  /** What is measured beside the floor. */
  readonly settings: readonly Setting[];
  /** Runs in a process of its own. */
  readonly measure: (side: Side) => Promise<Figure[]>;
}

const ALL = ["plain", "flush", "hooks", "transcript"] as const;

export const scenarios: Readonly<Record<string, Scenario>> = {
  stream: { settings: ALL, measure: stream },
  tools: { settings: ALL, measure: tools },
  resume: { settings: ["plain"], measure: resume },
  memory: { settings: ["plain"], measure: memory },
  start: { settings: ["plain"], measure: start },
  cancel: { settings: ["plain"], measure: cancel },
};
