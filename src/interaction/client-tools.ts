/** Runs client tools where a handle is: claims first, then runs and responds. */
import type { Agent } from "../agent/types.ts";
import { messageOf, TurnloopError } from "../errors.ts";
import type { Unregister } from "../hooks/types.ts";
import type { JsonValue } from "../json.ts";
import type { ClientToolPayload, Interaction } from "./types.ts";

export type ClientToolBodies = Readonly<
  // The arguments have whatever type the tool's schema gives: the caller knows it, this module does not.
  // oxlint-disable-next-line typescript/no-explicit-any
  Record<string, (args: any, call: { readonly callId: string; readonly signal: AbortSignal }) => unknown>
>;

/**
 * Supplies the bodies of tools that were defined with `runsAt: "client"`. Of several clients only the one
 * whose claim was stored first runs a call. The signal aborts when the call is answered otherwise (a cancel,
 * an expiry) or when the returned undo is called. What a body answers must be JSON; what it throws is told
 * to the model.
 */
export function clientTools(agent: Agent, bodies: ClientToolBodies): Unregister {
  const running = new Map<string, AbortController>();

  function look(): void {
    const open = agent.interactions;
    for (const [id, controller] of running) {
      if (!open.some((one) => one.id === id)) {
        running.delete(id);
        controller.abort(new TurnloopError("INTERACTION_RESOLVED", `${id} has been answered otherwise`));
      }
    }
    for (const one of open) {
      if (one.kind !== "client-tool" || one.claimedBy !== undefined || running.has(one.id)) continue;
      if (Object.hasOwn(bodies, (one.payload as ClientToolPayload).tool)) void run(one);
    }
  }

  async function run({ id, callId, payload }: Interaction): Promise<void> {
    const controller = new AbortController();
    running.set(id, controller);
    const { signal } = controller;
    const { tool, arguments: args } = payload as ClientToolPayload;
    try {
      await agent.claim(id);
      const answer = await body(tool, args, { callId: callId ?? id, signal });
      try {
        await agent.respond(id, answer);
      } catch (thrown) {
        // What the log cannot hold is told as an error, or the call would wait for ever.
        if (TurnloopError.is(thrown, "INVALID_CONTENT")) await agent.respond(id, { error: messageOf(thrown) });
      }
    } catch {
      // Claimed by another client, or answered meanwhile: then it is not ours to run or to answer.
    } finally {
      running.delete(id);
    }
  }

  async function body(
    tool: string,
    args: JsonValue,
    call: { callId: string; signal: AbortSignal },
  ): Promise<JsonValue> {
    try {
      call.signal.throwIfAborted();
      return { value: toJson(await unlessAborted(async () => bodies[tool]!(args, call), call.signal)) };
    } catch (thrown) {
      return { error: messageOf(thrown) };
    }
  }

  const off = agent.subscribe(look);
  look();
  return () => {
    off();
    for (const controller of running.values())
      controller.abort(new TurnloopError("ABORTED", "the client tools were taken away"));
  };
}

/** A body that does not heed its signal is not waited for. */
function unlessAborted(body: () => Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    body()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", abort));
  });
}

/** As JSON.stringify says it; nothing at all becomes null. */
function toJson(value: unknown): JsonValue {
  return JSON.parse(JSON.stringify(value) ?? "null") as JsonValue;
}
