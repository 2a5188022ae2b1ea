/** The model that both sides are measured with: all it says is ready at once, so the time that passes is the loop's. */
import type { ModelChunk } from "turnloop";

/** A chunk of text: four characters, about one token. */
const PIECE = "abcd";
const ARGUMENTS = '{"q":"hello","n":1}';

/** What the tool answers. */
export const RESULT = "the result of the tool, a sentence of some fifty characters";

/** What a side of the benchmark asks of a model. */
export type Stream = (signal: AbortSignal) => AsyncIterable<ModelChunk>;

/** Streams `count` chunks of text. */
export function textModel(count: number): Stream {
  return async function* () {
    for (let i = 0; i < count; i += 1) yield { type: "delta", index: 0, text: PIECE };
    yield { type: "finish", reason: { kind: "stop" } };
  };
}

/** Calls the tool in each of `steps` answers, after `words` chunks of text, and says one word in the end. */
export function toolModel(steps: number, words = 0): Stream {
  let step = 0;
  return async function* () {
    step += 1;
    for (let i = 0; i < words; i += 1) yield { type: "delta", index: 0, text: PIECE };
    if (step <= steps) {
      yield { type: "block-start", index: 1, block: { type: "tool-call", id: `c${step}`, name: "look" } };
      yield { type: "delta", index: 1, text: ARGUMENTS };
      yield { type: "block-end", index: 1 };
      yield { type: "finish", reason: { kind: "tool-calls" } };
    } else {
      yield { type: "delta", index: 0, text: PIECE };
      yield { type: "finish", reason: { kind: "stop" } };
    }
  };
}

/** How somebody takes a cancel: he stops, or he never looks at the signal and stays silent for ever. */
export type Manner = "polite" | "deaf";

/** Streams a hundred chunks and then says nothing more; `silent` is told when that begins. */
export function stallingModel(manner: Manner, silent: () => void): Stream {
  return async function* (signal) {
    for (let i = 0; i < 100; i += 1) yield { type: "delta", index: 0, text: PIECE };
    silent();
    await stall(manner, signal);
  };
}

/** Never resolves; rejects when the signal aborts, unless it is deaf. */
export function stall(manner: Manner, signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (manner === "polite") signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}
