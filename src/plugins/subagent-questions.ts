/** Hands what a helper asks to whoever answers its parent, and the answers back. */
import {
  TurnloopError,
  type Agent,
  type Clock,
  type Interaction,
  type JsonValue,
  type ToolCallContext,
  type Unregister,
} from "../core.ts";

/** `payload` of a parent's question for its helper. The answer is handed on as it is. */
export type SubagentQuestion = {
  /** The helper's session. */
  readonly helper: string;
  /** What is open there: its id, kind and payload. */
  readonly interaction: string;
  readonly kind: string;
  readonly payload: JsonValue;
};

type Asked = Pick<Interaction, "id" | "kind" | "payload" | "expiresAt">;

/** It was answered, has run out or was given up elsewhere: nothing is left to hand on. */
const SETTLED = ["INTERACTION_RESOLVED", "INTERACTION_CANCELLED", "INTERACTION_EXPIRED"];

/**
 * The questions of a call are numbered, and one that has its answer in the parent's log has it at once. So a call that
 * is run again asks all of what it had asked, in that order, before it asks anything new. An answer in the wrong form
 * is asked for again; what is settled at the helper itself is settled at the parent too. `failed` is told when an answer cannot be had, or not be handed on.
 */
export function forwardQuestions(
  helper: Agent,
  call: ToolCallContext,
  clock: Clock,
  failed: (cause: unknown) => void,
): Unregister {
  const parent = call.agent;
  /** How many questions about an interaction are under way. */
  const open = new Map<string, number>();

  async function ask({ id, kind, payload, expiresAt }: Asked): Promise<void> {
    open.set(id, (open.get(id) ?? 0) + 1);
    const question: SubagentQuestion = { helper: helper.id, interaction: id, kind, payload };
    const expiry = expiresAt === undefined ? {} : { expiresInMs: Math.max(0, expiresAt - clock.now()) };
    try {
      const answer = await call.ask(question, expiry);
      await helper.respond(id, answer);
    } finally {
      open.set(id, open.get(id)! - 1);
    }
  }

  function forward(one: Asked): void {
    ask(one).catch((thrown: unknown) => {
      // Whoever has stopped the call has decided about the helper.
      if (call.signal.aborted || SETTLED.some((code) => TurnloopError.is(thrown, code))) return;
      if (!TurnloopError.is(thrown, "INVALID_ANSWER")) failed(thrown);
      else if (open.get(one.id) === 0) forward(one);
    });
  }

  /** Nobody need answer any more. */
  function settle(id: string, value: JsonValue = null): void {
    for (const { id: question, callId, payload } of parent.interactions) {
      const asked = callId === call.callId ? questionIn(payload) : undefined;
      if (asked?.helper !== helper.id || asked.interaction !== id) continue;
      parent.respond(question, value).catch((thrown: unknown) => {
        if (!call.signal.aborted && !TurnloopError.is(thrown, "INTERACTION_RESOLVED")) failed(thrown);
      });
    }
  }

  const before = askedBefore(parent, helper, call);
  for (const one of before) forward(one);
  for (const { id } of before) if (!helper.interactions.some((one) => one.id === id)) settle(id);
  const offs = [
    helper.on("interaction/requested", ({ data }) => forward(data)),
    helper.on("interaction/resolved", ({ data }) => settle(data.id, data.value)),
  ];
  for (const one of helper.interactions) if (!open.has(one.id)) forward(one);
  return () => {
    for (const off of offs) off();
  };
}

function askedBefore(parent: Agent, helper: Agent, { callId }: ToolCallContext): readonly Asked[] {
  return parent.session.events.flatMap((event) => {
    if (event.type !== "interaction/requested" || event.data.callId !== callId) return [];
    const asked = questionIn(event.data.payload);
    return asked?.helper === helper.id ? [{ id: asked.interaction, kind: asked.kind, payload: asked.payload }] : [];
  });
}

function questionIn(payload: JsonValue): SubagentQuestion | undefined {
  const { helper, interaction, kind, payload: own = null } = (payload ?? {}) as Partial<SubagentQuestion>;
  if (typeof helper !== "string" || typeof interaction !== "string" || typeof kind !== "string") return undefined;
  return { helper, interaction, kind, payload: own };
}
