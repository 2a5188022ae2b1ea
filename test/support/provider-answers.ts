/** How a test says, in an address, what the provider at the other end shall answer. Runs in browsers too. */

export interface Answer {
  /** Default 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The name of a recorded stream, instead of `body`. */
  readonly stream?: string;
  /** Cuts the bytes into pieces, the same for the same seed. */
  readonly seed?: number;
  /** How many bytes to send; default all. */
  readonly sent?: number;
  /**
   * What comes after them: an end, a connection that is lost at once, one that is lost when `lose` says so, or
   * silence. Default "close". What a client has not read when it loses its connection is lost as well.
   */
  readonly end?: "close" | "drop" | "drop-later" | "hang";
  /** Not even a status. */
  readonly silent?: boolean;
  /** False: a page of another origin must not read it. */
  readonly cors?: boolean;
}

let addresses = 0;

/** A base URL of its own. The n-th request to it gets the n-th answer; the last one stays. */
export function providerUrl(server: string, ...answers: readonly Answer[]): string {
  addresses += 1;
  return `${server}/${addresses}-${Math.random().toString(36).slice(2)}/${encodeURIComponent(JSON.stringify(answers))}`;
}

/** Loses the connections to an address that wait for it with `end: "drop-later"`. */
export async function lose(baseUrl: string): Promise<void> {
  await fetch(`${baseUrl}/lose`, { method: "POST" });
}

/** The other way round: the base of a path, and its answers. */
export function answersIn(path: string): { readonly base: string; readonly answers: readonly Answer[] } | undefined {
  const [, base, json] = /^(\/[^/]+\/([^/]+))\//.exec(path) ?? [];
  if (base === undefined || json === undefined) return undefined;
  return { base, answers: JSON.parse(decodeURIComponent(json)) as Answer[] };
}

/** Events of the Chat Completions dialect, from their deltas. */
export function chat(...deltas: readonly object[]): string {
  return sse(...deltas.map((delta) => ({ choices: [{ index: 0, delta }] })), ENDED);
}

const ENDED = {
  choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 2 },
};

/** Server-sent events, with the `[DONE]` of this dialect. */
export function sse(...events: readonly object[]): string {
  return [...events.map((event) => JSON.stringify(event)), "[DONE]"].map((data) => `data: ${data}\n\n`).join("");
}

/** A whole answer in the Responses dialect. */
export function responses(text: string): string {
  const item = { id: "msg_1", type: "message" };
  return sse(
    { type: "response.created", response: { id: "resp_1", created_at: 1, model: "m" } },
    { type: "response.output_item.added", output_index: 0, item },
    { type: "response.output_text.delta", item_id: item.id, output_index: 0, content_index: 0, delta: text },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: { usage: { input_tokens: 3, output_tokens: 2 } } },
  );
}
