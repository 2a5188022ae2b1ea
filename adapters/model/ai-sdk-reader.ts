/** Opens and reads a model's stream, and lets go of it on an abort, however deaf the model is. */
import type { LanguageModelV4StreamPart, LanguageModelV4StreamResult } from "@ai-sdk/provider";

export interface PartReader {
  /** What the provider says its answer is, where it says so. */
  readonly contentType: string | undefined;
  /** Done after an abort, too. Rejects with what the stream fails with. */
  read(): Promise<ReadableStreamReadResult<LanguageModelV4StreamPart>>;
  /** Never throws; a stream that has not ended is cancelled. */
  close(): void;
}

/** Undefined when the signal aborts first: a stream that comes late is cancelled. Rejects as `start` does. */
export function openReader(
  start: () => PromiseLike<LanguageModelV4StreamResult>,
  signal: AbortSignal,
): Promise<PartReader | undefined> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => resolve(undefined);
    if (signal.aborted) return giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    const opened = (async () => start())();
    opened.then(
      (result) => {
        signal.removeEventListener("abort", giveUp);
        const reader = readerOf(result, signal);
        if (signal.aborted) reader.close();
        resolve(reader);
      },
      (error: unknown) => {
        signal.removeEventListener("abort", giveUp);
        reject(error);
      },
    );
    return undefined;
  });
}

function readerOf({ stream, response }: LanguageModelV4StreamResult, signal: AbortSignal): PartReader {
  const reader = stream.getReader();
  const close = (): void => {
    signal.removeEventListener("abort", close);
    // A stream that failed rejects this with what its reader was told already.
    reader.cancel(signal.reason).catch(() => {});
  };
  signal.addEventListener("abort", close, { once: true });
  return { contentType: response?.headers?.["content-type"], read: () => reader.read(), close };
}
