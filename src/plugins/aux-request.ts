/** A request beside the steps, such as for a summary or a title: its text, and its cost in the log. */
import {
  assemble,
  chunkOf,
  messageOf,
  textIn,
  TurnloopError,
  type ErrorData,
  type Harness,
  type ModelChunk,
  type Session,
  type Usage,
} from "../core.ts";

export interface AuxRequest {
  readonly harness: Harness;
  /** Where `model/aux` is logged. */
  readonly session: Session;
  /** Such as `title`. */
  readonly purpose: string;
  /** A route in the model registry. */
  readonly route: string;
  readonly system: string;
  readonly prompt: string;
  /** Gives the request up, at once. */
  readonly signal: AbortSignal;
}

/** Nobody sees such a request hang: it is given up after this. */
const LIMIT_MS = 120_000;

/**
 * Resolves with the whole text of the answer. Rejects with the signal's reason, NO_ADAPTER, AUX_TIMEOUT,
 * STREAM_INCOMPLETE, EMPTY_RESPONSE, and with what the model fails with. Whatever becomes of it, `model/aux`
 * tells what it has used, as far as the model has said so.
 */
export async function auxRequest(request: AuxRequest): Promise<string> {
  const { harness, session, purpose, route, signal } = request;
  signal.throwIfAborted();
  const model = harness.models.get(route);
  if (!model) throw new TurnloopError("NO_ADAPTER", `there is no model named ${route} for the ${purpose}`);
  const stop = new AbortController();
  const pass = (): void => stop.abort(signal.reason);
  signal.addEventListener("abort", pass, { once: true });
  const late = new TurnloopError("AUX_TIMEOUT", `the model has not finished the ${purpose} in ${LIMIT_MS} ms`);
  harness.clock.sleep(LIMIT_MS, stop.signal).then(
    () => stop.abort(late),
    () => {},
  );

  let usage: Usage | undefined;
  async function read(): Promise<string> {
    const chunks: ModelChunk[] = [];
    const { system, prompt } = request;
    const stream = model!.stream(
      { config: { model: route }, system, messages: [{ role: "user", content: [{ type: "text", text: prompt }] }] },
      // Not the session's own id: what a provider keeps by it is another conversation.
      { signal: stop.signal, sessionId: `${session.id}/${purpose}` },
    );
    for await (const given of stream) {
      for (const raw of Array.isArray(given) ? (given as readonly ModelChunk[]) : [given as ModelChunk]) {
        const chunk = chunkOf(raw);
        if (chunk.type === "usage") usage = chunk.usage;
        chunks.push(chunk);
      }
      stop.signal.throwIfAborted();
    }
    return textOf(chunks);
  }

  try {
    const text = await unlessAborted(read(), stop.signal);
    note();
    return text;
  } catch (thrown) {
    note(dataOf(thrown));
    throw thrown;
  } finally {
    signal.removeEventListener("abort", pass);
    stop.abort();
  }

  function note(error?: ErrorData): void {
    try {
      session.append("model/aux", { purpose, model: model!.id, ...(usage && { usage }), ...(error && { error }) });
    } catch {
      // The session takes no more events: there is no log left to tell.
    }
  }
}

function textOf(chunks: readonly ModelChunk[]): string {
  const { blocks, finish } = assemble(chunks);
  if (!finish) throw new TurnloopError("STREAM_INCOMPLETE", "the model's answer broke off before its end");
  if (finish.kind === "error")
    throw Object.assign(new TurnloopError(finish.code ?? "MODEL_ERROR", finish.message), finish);
  const text = textIn(blocks.map(({ block }) => block));
  if (text.trim() === "") throw new TurnloopError("EMPTY_RESPONSE", "the model has answered nothing at all");
  return text.trim();
}

function dataOf(thrown: unknown): ErrorData {
  const { code } = (typeof thrown === "object" && thrown !== null ? thrown : {}) as { code?: unknown };
  return { message: messageOf(thrown).toWellFormed(), ...(typeof code === "string" && { code }) };
}

/** A model that does not heed its signal is not waited for. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
