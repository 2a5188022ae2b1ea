/** The adapter for the loop benchmark that compares libraries: what it drives is the built package. */
import { pathToFileURL } from "node:url";
import { createHarness, defineTool, run } from "../../dist/index.js";

// Lies beside the program that loads this.
const perf = await import(new URL("common.mjs", pathToFileURL(process.argv[1])).href);
const { ARGS, RESULT, SCHEMA, pick } = perf;

export const entry = { from: "../../dist/index.js", names: ["createHarness", "defineTool", "run"] };

let stream;
let execute;
const harness = createHarness({
  model: { id: "mock/model", stream: (request, options) => stream(request, options) },
  tools: [defineTool({ name: "t", description: "A tool", inputSchema: SCHEMA, execute: () => execute() })],
});

/** One harness, as a program has it; each run has its own agent, session and log, and leaves none behind. */
async function open() {
  const { agent, dispose } = await harness.agents.create();
  return {
    agent,
    async close() {
      await dispose();
      await harness.sessions.delete(agent.id);
    },
  };
}

export async function text(o) {
  stream = async function* (_request, { signal }) {
    for await (const piece of pick(o, signal)) yield { type: "delta", index: 0, text: piece };
    yield { type: "finish", reason: { kind: "stop" } };
  };
  const { agent, close } = await open();
  let n = 0;
  agent.session.subscribe((event) => {
    if (event.type !== "assistant/chunk" || event.data.chunk.type !== "delta") return;
    n += 1;
    o.onChunk?.(n);
  });
  await run(agent, "hi", o.ctrl ? { signal: o.ctrl.signal } : {}).result;
  o.keep?.(agent.session);
  await close();
  return n;
}

export async function tools(S, o = {}) {
  let step = 0;
  let n = 0;
  execute = async () => {
    n += 1;
    return RESULT;
  };
  stream = async function* () {
    step += 1;
    if (step <= S) {
      yield { type: "block-start", index: 0, block: { type: "tool-call", id: `c${step}`, name: "t" } };
      yield { type: "delta", index: 0, text: ARGS };
      yield { type: "block-end", index: 0 };
      yield { type: "finish", reason: { kind: "tool-calls" } };
    } else {
      yield { type: "delta", index: 0, text: "done" };
      yield { type: "finish", reason: { kind: "stop" } };
    }
  };
  const { agent, close } = await open();
  if (o.ev) agent.session.subscribe(o.ev);
  await run(agent, "hi").result;
  o.keep?.(agent.session);
  await close();
  return n;
}
