/** A scripted stand-in for a language model: it needs no network and no key, and understands a few words. */
import type { Model, ModelChunk, ModelRequest } from "turnloop";
import { readConversation } from "./offline-conversation.ts";
import { nextScene, type Scene } from "./offline-script.ts";

/** Milliseconds a piece: about the speed of a fast model. */
const PACE = 22;

export function offlineModel(pace: number = PACE): Model {
  return {
    id: "turnloop/scripted-demo",
    stream: (request, { signal }) => play(request, pace, signal),
  };
}

async function* play(request: ModelRequest, pace: number, signal: AbortSignal): AsyncGenerator<ModelChunk> {
  const scene = nextScene(readConversation(request.messages));
  let index = 0;
  await sleep(pace * 15, signal);
  for (const type of ["reasoning", "text"] as const) {
    const text = scene[type];
    if (text === undefined) continue;
    yield { type: "block-start", index, block: { type } };
    for (const piece of piecesOf(text)) {
      yield { type: "delta", index, text: piece };
      await sleep(pace, signal);
    }
    yield { type: "block-end", index };
    index += 1;
  }
  yield* writeCall(scene, index, pace, signal);
  yield { type: "finish", reason: finishOf(scene) };
}

async function* writeCall(
  { call }: Scene,
  index: number,
  pace: number,
  signal: AbortSignal,
): AsyncGenerator<ModelChunk> {
  if (!call) return;
  yield { type: "block-start", index, block: { type: "tool-call", name: call.name } };
  for (const piece of piecesOf(JSON.stringify(call.args))) {
    yield { type: "delta", index, text: piece };
    await sleep(pace, signal);
  }
  yield { type: "block-end", index };
}

function finishOf(scene: Scene): (ModelChunk & { type: "finish" })["reason"] {
  if (scene.error !== undefined) return { kind: "error", code: "SCRIPTED_FAILURE", message: scene.error };
  return { kind: scene.call ? "tool-calls" : "stop" };
}

/** Words with the space before them, and spaces at the end: joined, they are the text again. */
function piecesOf(text: string): readonly string[] {
  return text.match(/\s*\S{1,12}|\s+$/g) ?? [];
}

/** Rejects with the signal's reason as soon as that aborts. */
async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
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
