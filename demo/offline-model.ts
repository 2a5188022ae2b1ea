/** A scripted stand-in for a language model: it needs no network and no key, and understands a few words. */
import type { Model, ModelChunk, ModelRequest, Usage } from "turnloop";
import { readConversation } from "./offline-conversation.ts";
import { nextScene, type Scene } from "./offline-script.ts";

/** Milliseconds a piece: about the speed of a fast model. */
const PACE = 22;
/** Milliseconds that it makes up for, when the page was busy. */
const LATENESS = 200;
/** Before the first piece, in pieces. */
const THINKING = 15;

export function offlineModel(pace: number = PACE): Model {
  return {
    id: "turnloop/scripted-demo",
    stream: (request, { signal }) => play(request, pace, signal),
  };
}

async function* play(request: ModelRequest, pace: number, signal: AbortSignal): AsyncGenerator<ModelChunk> {
  const scene = nextScene(readConversation(request.messages));
  const wait = createMetronome(pace, signal);
  await wait(THINKING);
  let index = 0;
  for (const chunks of blocksOf(scene)) {
    for (const chunk of chunks(index)) {
      yield chunk;
      if (chunk.type === "delta") await wait(1);
    }
    index += 1;
  }
  yield { type: "usage", usage: usageFor(request, scene) };
  yield { type: "finish", reason: finishOf(scene) };
}

type Block = (index: number) => Iterable<ModelChunk>;

function* blocksOf({ reasoning, text, call }: Scene): Generator<Block> {
  if (reasoning !== undefined) yield (index) => written(index, { type: "reasoning" }, reasoning);
  if (text !== undefined) yield (index) => written(index, { type: "text" }, text);
  if (call) yield (index) => written(index, { type: "tool-call", name: call.name }, JSON.stringify(call.args));
}

function* written(
  index: number,
  block: (ModelChunk & { type: "block-start" })["block"],
  text: string,
): Generator<ModelChunk> {
  yield { type: "block-start", index, block };
  for (const piece of piecesOf(text)) yield { type: "delta", index, text: piece };
  yield { type: "block-end", index };
}

function finishOf(scene: Scene): (ModelChunk & { type: "finish" })["reason"] {
  if (scene.error !== undefined) return { kind: "error", code: "SCRIPTED_FAILURE", message: scene.error };
  return { kind: scene.call ? "tool-calls" : "stop" };
}

/** Four letters a token, as the page says where it shows them. */
function usageFor(
  { system = "", tools = [], messages }: ModelRequest,
  { reasoning = "", text = "", call }: Scene,
): Usage {
  const tokens = (letters: string): number => Math.ceil(letters.length / 4);
  return {
    input: tokens(system + JSON.stringify(tools) + JSON.stringify(messages)),
    output: tokens(text + (call ? JSON.stringify(call) : "")),
    reasoning: tokens(reasoning),
  };
}

/** Words with the space before them, and spaces at the end: joined, they are the text again. */
function piecesOf(text: string): readonly string[] {
  return text.match(/\s*\S{1,12}|\s+$/g) ?? [];
}

/** Waits that long behind what was waited for before: a timer that is late makes up for it. */
function createMetronome(pace: number, signal: AbortSignal): (pieces: number) => Promise<void> {
  let due = performance.now();
  return async (pieces) => {
    signal.throwIfAborted();
    due = Math.max(due + pace * pieces, performance.now() - LATENESS);
    const ms = due - performance.now();
    if (ms > 0) await sleep(ms, signal);
  };
}

/** Rejects with the signal's reason as soon as that aborts. */
async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
