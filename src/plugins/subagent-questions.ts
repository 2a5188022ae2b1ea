/** Hands what a helper asks to whoever answers its parent, and the answers back. */
import {
  TurnloopError,
  type Agent,
  type Interaction,
  type JsonValue,
  type ToolCallContext,
  type Unregister,
} from "../core.ts";

/**
 * Each question once, through the call: the questions of a call are numbered, and one that has its answer in the
 * parent's log has it at once. So a call that is run again asks in the same order what it had asked before.
 */
export function forwardQuestions(helper: Agent, parent: Agent, call: ToolCallContext): Unregister {
  const forwarded = new Set<string>();

  async function forward(id: string, kind: string, payload: JsonValue): Promise<void> {
    if (forwarded.has(id)) return;
    forwarded.add(id);
    const answer = await call.ask({ helper: helper.id, interaction: id, kind, payload });
    await helper.respond(id, answer);
  }

  /** A call that ends asks no more; one that was answered meanwhile, or in the wrong form, is asked about by nobody. */
  function attempt(one: Pick<Interaction, "id" | "kind" | "payload">): void {
    forward(one.id, one.kind, one.payload).catch((thrown: unknown) => {
      if (!TurnloopError.is(thrown, "INVALID_ANSWER")) return;
      forwarded.delete(one.id);
      attempt(one);
    });
  }

  for (const { id, kind, payload } of askedBefore(parent, helper, call)) attempt({ id, kind, payload });
  const off = helper.on("interaction/requested", ({ data }) => attempt(data));
  for (const interaction of helper.interactions) attempt(interaction);
  return off;
}

interface Asked {
  readonly id: string;
  readonly kind: string;
  readonly payload: JsonValue;
}

function askedBefore(parent: Agent, helper: Agent, { callId }: ToolCallContext): readonly Asked[] {
  return parent.session.events.flatMap((event) => {
    if (event.type !== "interaction/requested" || event.data.callId !== callId) return [];
    const asked = event.data.payload as {
      helper?: unknown;
      interaction?: unknown;
      kind?: unknown;
      payload?: JsonValue;
    };
    if (asked?.helper !== helper.id || typeof asked.interaction !== "string") return [];
    return [{ id: asked.interaction, kind: String(asked.kind), payload: asked.payload ?? null }];
  });
}
