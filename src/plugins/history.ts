/** What a history is made of now, event by event, with the size of each, and what the log tells of the whole. */
import type { SessionEvent, SessionView, Usage } from "../core.ts";
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

/** As the log stands at the call. */
export function historyOf(session: SessionView): History {
  const told = toldIn(session);
  const nodes = session.history();
  const size = (from: number, to = nodes.length): number => {
    let sum = 0;
    for (let i = from; i < to; i += 1) sum += sizeOf(nodes[i]!);
    return sum;
  };
  const { answer, usage } = told;
  told.answer = undefined;
  const at = answer ? nodes.indexOf(answer) : -1;
  // It measured what stood before it, unless that has been replaced since.
  if (at >= 0 && nodes.slice(0, at).every(({ seq }) => seq < answer!.seq))
    told.beside = usedTokens(usage!) - size(0, at + 1);
  return { nodes, total: size(0), size, beside: told.beside, route: told.route };
}

interface Told extends Fold, Pick<Writable<History>, "beside" | "route"> {
  /** The last answer that told its usage, until it is looked at. */
  answer: SessionEvent | undefined;
  usage: Usage | undefined;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const toldIn: (session: SessionView) => Told = /* @__PURE__ */ foldOf(createTold, () => 0);

function createTold(): Told {
  const told: Told = {
    answer: undefined,
    usage: undefined,
    beside: undefined,
    route: undefined,
    take(event) {
      if (event.type === "assistant/message" && event.data.usage) {
        const { input, cacheRead = 0 } = event.data.usage;
        if (input === undefined && cacheRead === 0) return;
        told.answer = event;
        told.usage = event.data.usage;
      } else if (event.type === "request/header") {
        told.route = event.data.header.config.model;
      } else if (event.type === "agent/configured") {
        told.route = event.data.patch.model ?? told.route;
      }
    },
  };
  return told;
}

const sizes = /* @__PURE__ */ new WeakMap<SessionEvent, number>();

function sizeOf(node: SessionEvent): number {
  let size = sizes.get(node);
  if (size === undefined) sizes.set(node, (size = tokensOfNode(node)));
  return size;
}

function tokensOfNode({ data }: SessionEvent): number {
  // A few for what frames a message.
  return 4 + ("content" in data ? tokensIn(data.content) : 0);
}
