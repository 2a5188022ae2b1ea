/** The two sides of the benchmark, behind one face: the floor, and the built package in each of its settings. */
import {
  createHarness,
  createTranscript,
  defineTool,
  memoryStorage,
  run,
  type Agent,
  type Harness,
  type SessionStorage,
} from "turnloop";
import { floorTurn, type FloorEvent } from "./floor.ts";
import type { Stream } from "./mock.ts";

/**
 * `plain`: an agent as it comes, storage in memory, with one subscriber. The others add to that: `flush` asks for
 * all to be stored at every hundredth event, `hooks` has ten hooks registered, `transcript` has a view attached
 * that is read at every hundredth event.
 */
export type Setting = "plain" | "flush" | "hooks" | "transcript";
export type Side = "floor" | Setting;

export type Tool = (args: unknown, signal: AbortSignal) => unknown;

/** A turn that stands ready. */
export interface Prepared {
  /** Runs it. Answers with what a user would hold on to, and how many events he was told of. */
  turn(): Promise<{ readonly kept: unknown; readonly told: number }>;
  cancel(): void;
  /** Leaves nothing behind. */
  dispose(): Promise<void>;
}

/** Every so many events a user looks. */
const OFTEN = 100;

export async function prepare(side: Side, stream: Stream, tool: Tool = () => undefined): Promise<Prepared> {
  return side === "floor" ? prepareFloor(stream, tool) : await prepareAgent(side, stream, tool);
}

function prepareFloor(stream: Stream, tool: Tool): Prepared {
  const controller = new AbortController();
  return {
    async turn() {
      const log: FloorEvent[] = [];
      let told = 0;
      for await (const _event of floorTurn(log, { stream, tool, signal: controller.signal })) told += 1;
      return { kept: log, told };
    },
    cancel: () => controller.abort(),
    async dispose() {},
  };
}

/** A harness with the model, and the one tool that it calls. */
export function harnessOf({ stream, tool, storage = memoryStorage() }: Parts): Harness {
  return createHarness({
    storage,
    model: { id: "mock/model", stream: (_request, { signal }) => stream(signal) },
    tools: [
      defineTool({
        name: "look",
        description: "Looks something up",
        inputSchema: { type: "object", properties: { q: { type: "string" }, n: { type: "number" } } },
        execute: (args, { signal }) => tool(args, signal),
      }),
    ],
  });
}

interface Parts {
  readonly stream: Stream;
  readonly tool: Tool;
  readonly storage?: SessionStorage;
}

async function prepareAgent(setting: Setting, stream: Stream, tool: Tool): Promise<Prepared> {
  const harness = harnessOf({ stream, tool });
  if (setting === "hooks") registerHooks(harness);
  const { agent, dispose } = await harness.agents.create();
  const look = lookerOf(setting, agent);
  let told = 0;
  agent.session.subscribe(() => {
    told += 1;
    if (told % OFTEN === 0) look();
  });
  return {
    async turn() {
      await run(agent, "hi").result;
      look();
      return { kept: agent.session, told };
    },
    cancel: () => agent.cancel(),
    async dispose() {
      await dispose();
      await harness.dispose();
    },
  };
}

/** What a user does every now and then. */
function lookerOf(setting: Setting, agent: Agent): () => void {
  if (setting === "flush") return () => void agent.flush();
  if (setting !== "transcript") return () => {};
  const transcript = createTranscript(agent);
  transcript.subscribe(() => {});
  return () => void transcript.getSnapshot();
}

/** Ten hooks, each of which does nothing. */
function registerHooks({ hooks }: Harness): void {
  hooks.on("session/event", () => {});
  hooks.on("agent/status", () => {});
  hooks.on("agent/pre-step", () => {});
  hooks.on("agent/request", (_payload, next) => next());
  hooks.on("model/stream", (_payload, next) => next());
  hooks.on("agent/step-result", (_payload, next) => next());
  hooks.on("tools/pre-execute", (_payload, next) => next());
  hooks.on("tools/execute", (_payload, next) => next());
  hooks.on("tools/post-execute", (_payload, next) => next());
  hooks.on("agent/turn-continuation", (_payload, next) => next());
}
