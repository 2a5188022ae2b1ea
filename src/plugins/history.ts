/** What a history is made of now, event by event, with the size of each: a fold that looks at each event once. */
import type { SessionEvent, SessionView } from "../core.ts";
import { foldOf, type Fold } from "./follow.ts";
import { tokensIn, usedTokens } from "./tokens.ts";

export interface History {
  /** The events whose messages a model reads, in their order. Their seqs need not rise. */
  readonly nodes: readonly SessionEvent[];
  /** Estimated tokens of all of it. */
  readonly total: number;
  /** Of a part of the nodes. */
  size(from: number, to?: number): number;
  /**
   * What the last answer that told its usage has measured besides: the system prompt, the tools, and the error of
   * our estimate. Undefined until there is one.
   */
  readonly beside: number | undefined;
  /** The route of the next request, as far as the log tells. */
  readonly route: string | undefined;
}

interface Folded extends History, Fold {
  route: string | undefined;
  total: number;
}

/** As the log stands at the call. */
export const historyOf: (session: SessionView) => History = /* @__PURE__ */ foldOf(createHistory, () => 0);

function createHistory(): Folded {
  let nodes: SessionEvent[] = [];
  let sizes: number[] = [];
  let beside: number | undefined;

  function place(event: SessionEvent): void {
    const tokens = tokensOfNode(event);
    if (event.surface === "append") {
      nodes.push(event);
      sizes.push(tokens);
      history.total += tokens;
      return;
    }
    const [start, end] = event.surface!.replace;
    const from = nodes.findIndex((node) => node.seq === start);
    const to = nodes.findIndex((node) => node.seq === end);
    if (from < 0 || to < from) return;
    nodes = nodes.toSpliced(from, to - from + 1, event);
    sizes = sizes.toSpliced(from, to - from + 1, tokens);
    history.total = history.size(0);
  }

  const history: Folded = {
    route: undefined,
    get nodes() {
      return nodes;
    },
    total: 0,
    size(from, to = nodes.length) {
      let sum = 0;
      for (let i = from; i < to; i += 1) sum += sizes[i]!;
      return sum;
    },
    get beside() {
      return beside;
    },
    take(event) {
      if (event.surface !== undefined) place(event);
      if (event.type === "assistant/message" && event.data.usage) {
        const { input, cacheRead = 0 } = event.data.usage;
        if (input !== undefined || cacheRead > 0) beside = usedTokens(event.data.usage) - history.total;
      } else if (event.type === "request/header") {
        history.route = event.data.header.config.model;
      } else if (event.type === "agent/configured") {
        history.route = event.data.patch.model ?? history.route;
      }
    },
  };
  return history;
}

function tokensOfNode({ data }: SessionEvent): number {
  // A few for what frames a message.
  return 4 + ("content" in data ? tokensIn(data.content) : 0);
}
