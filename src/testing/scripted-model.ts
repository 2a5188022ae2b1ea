/** A model for tests: answers each request with the next line of a script. */
import { TurnloopError, type Model, type ModelChunk, type ModelRequest, type Usage } from "../core.ts";

export interface ScriptedParts {
  readonly text?: string;
  readonly reasoning?: string;
  readonly toolCalls?: readonly { readonly name: string; readonly args: unknown; readonly id?: string }[];
  readonly usage?: Usage;
  /** The answer fails with this, after what else it says. */
  readonly error?: { readonly message: string; readonly code?: string };
  /** The kind of the finish reason; `none`: the stream just ends. Default: `stop`, or `tool-calls`. */
  readonly finish?: string;
  /** The very chunks, instead of all the rest. */
  readonly chunks?: readonly ModelChunk[];
  /** After all chunks the stream stays open: until the signal aborts (`polite`), or for ever (`deaf`). */
  readonly hang?: "polite" | "deaf";
}

/** Text, parts, or a function of the request that gives either, at once or later. */
export type ScriptedAnswer =
  | string
  | ScriptedParts
  | ((request: ModelRequest, options: { readonly signal: AbortSignal }) => ScriptedAnswer | Promise<ScriptedAnswer>);

export interface ScriptedModel extends Model {
  /** What it was asked, in order. */
  readonly requests: readonly ModelRequest[];
}

/**
 * Gives the answers one by one, and fails SCRIPT_ENDED when it is asked for more than there are. Text comes in
 * chunks of a word each.
 */
export function scriptedModel(
  answers: readonly ScriptedAnswer[],
  options: { readonly id?: string } = {},
): ScriptedModel {
  const requests: ModelRequest[] = [];
  return {
    id: options.id ?? "scripted/model",
    requests,
    async *stream(request, { signal }) {
      const answer = answers[requests.length];
      requests.push(request);
      if (answer === undefined) {
        throw new TurnloopError(
          "SCRIPT_ENDED",
          `the script has ${answers.length} answers, and this is request ${requests.length}`,
        );
      }
      const parts = await resolve(answer, request, signal);
      yield* parts.chunks ?? chunksOf(parts);
      if (parts.hang) await hang(parts.hang, signal);
    },
  };
}

async function resolve(answer: ScriptedAnswer, request: ModelRequest, signal: AbortSignal): Promise<ScriptedParts> {
  let given = answer;
  while (typeof given === "function") given = await given(request, { signal });
  return typeof given === "string" ? { text: given } : given;
}

function* chunksOf({
  text,
  reasoning,
  toolCalls = [],
  usage,
  error,
  finish,
  hang: open,
}: ScriptedParts): Generator<ModelChunk> {
  let index = 0;
  for (const [type, content] of [
    ["reasoning", reasoning],
    ["text", text],
  ] as const) {
    if (content === undefined) continue;
    yield { type: "block-start", index, block: { type } };
    for (const word of content.match(/\S*\s*/gu) ?? []) if (word !== "") yield { type: "delta", index, text: word };
    yield { type: "block-end", index };
    index += 1;
  }
  for (const { name, args, id } of toolCalls) {
    yield { type: "block-start", index, block: { type: "tool-call", name, ...(id !== undefined && { id }) } };
    yield { type: "delta", index, text: typeof args === "string" ? args : (JSON.stringify(args) ?? "") };
    yield { type: "block-end", index };
    index += 1;
  }
  if (open) return;
  if (usage) yield { type: "usage", usage };
  if (error) yield { type: "finish", reason: { kind: "error", ...error } };
  else if (finish !== "none")
    yield { type: "finish", reason: { kind: finish ?? (toolCalls.length > 0 ? "tool-calls" : "stop") } as never };
}

function hang(how: "polite" | "deaf", signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (how === "deaf") return;
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
}
