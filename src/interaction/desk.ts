/** What waits for somebody outside the loop: asked, claimed and answered through the log. */
import { isDuration } from "../clock.ts";
import { TurnloopError, type Report } from "../errors.ts";
import type { Dispatch } from "../hooks/hooks.ts";
import { defined, jsonCopy, type JsonValue } from "../json.ts";
import type { Agent } from "../agent/types.ts";
import type { Clock } from "../scope.ts";
import type { Log } from "../session/log.ts";
import { openInteractions, type InteractionState } from "../session/state.ts";
import type { SessionEvent } from "../session/types.ts";
import { checkAnswer } from "./answer.ts";
import type { ClientToolPayload, Interaction } from "./types.ts";

export interface Question {
  readonly id: string;
  readonly kind: string;
  readonly payload: JsonValue;
  readonly callId: string;
  readonly expiresInMs?: number | undefined;
}

export type Resolution = NonNullable<InteractionState["resolved"]>;

export interface Desk {
  /**
   * Asks, unless it was asked before, and answers what was answered, once that is stored. Rejects
   * INVALID_CONTENT, and what the storage rejects with.
   */
  ask(question: Question): Promise<Resolution>;
  respond(id: string, value: JsonValue): Promise<void>;
  claim(id: string, client: string): Promise<void>;
  /** Nothing that is open will be answered any more. */
  cancel(): void;
  /** At the opening of a parked turn: tells what is open again, and watches the clock for it. */
  reopen(): void;
  /** No more expiry from here on. */
  close(): void;
}

export interface DeskOptions {
  readonly log: Log;
  readonly hooks: Dispatch;
  readonly clock: Clock;
  readonly report: Report;
  readonly agent: () => Agent;
  /** Whether a tool may be run again. */
  readonly idempotent: (tool: string) => boolean;
  /** Resolves when everything so far is stored, however long that takes. */
  readonly stored: () => Promise<void>;
  /** The same, but gives up on a storage that does not answer. */
  readonly settled: () => Promise<void>;
  /** Whether anybody watches the agent. */
  readonly watched: () => boolean;
}

export function createDesk({
  log,
  hooks,
  clock,
  report,
  agent,
  idempotent,
  stored,
  settled,
  watched,
}: DeskOptions): Desk {
  const waiting = new Map<string, (resolution: Resolution) => void>();
  /** What watches the clock for an interaction. */
  const watching = new Map<string, AbortController>();

  log.session.subscribe((event: SessionEvent) => {
    if (event.type === "interaction/requested") announce(event.data.id);
    else if (event.type === "interaction/released") giveUp(event.data.id);
    else if (event.type === "interaction/resolved") {
      const known = log.state.interactions.get(event.data.id);
      const { id, value } = event.data;
      waiting.get(id)?.(event.data);
      waiting.delete(id);
      unwatch(id);
      if (known) {
        hooks.emit("interaction/resolved", defined({ agent: agent(), interaction: known.request, value }));
      }
    }
  });

  function announce(id: string): void {
    const interaction = openInteractions(log.state).find((one) => one.id === id);
    if (!interaction) return;
    if (!hooks.heard("interaction/requested") && !watched()) {
      report({
        code: "INTERACTION_WAITING",
        message: `nobody listens for ${id}, which the agent waits for; \`respond\` to it, or set \`interactive: false\``,
        sessionId: log.session.id,
      });
    }
    tell(interaction);
  }

  function tell(interaction: Interaction): void {
    hooks.emit("interaction/requested", { agent: agent(), interaction });
    if (interaction.expiresAt !== undefined) expireAt(interaction.id, interaction.expiresAt);
  }

  /** What its client had begun may not run again, and nobody will tell what came of it. */
  function giveUp(id: string): void {
    const known = log.state.interactions.get(id);
    if (!known || known.resolved || known.request.kind !== "client-tool" || log.closed) return;
    if (!idempotent((known.request.payload as ClientToolPayload).tool))
      log.write("interaction/resolved", { id, outcome: "cancelled" });
  }

  function expireAt(id: string, time: number): void {
    const watch = new AbortController();
    watching.set(id, watch);
    clock.sleep(Math.max(0, time - clock.now()), watch.signal).then(
      () => {
        if (isOpen(id) && !log.closed) log.write("interaction/resolved", { id, outcome: "expired" });
      },
      () => {},
    );
  }

  function unwatch(id: string): void {
    watching.get(id)?.abort();
    watching.delete(id);
  }

  function isOpen(id: string): boolean {
    const known = log.state.interactions.get(id);
    return known !== undefined && known.resolved === undefined;
  }

  function find(id: string): InteractionState {
    const known = log.state.interactions.get(id);
    if (known && !known.resolved) return known;
    const outcome = log.state.resolved.get(id);
    if (outcome) {
      throw new TurnloopError("INTERACTION_RESOLVED", `${id} is ${outcome} already; the first answer counts`);
    }
    throw new TurnloopError("INTERACTION_NOT_FOUND", `nothing waits under the id ${id}: it was never asked`);
  }

  return {
    async ask({ id, kind, payload, callId, expiresInMs }) {
      let known = log.state.interactions.get(id);
      if (!known) {
        if (expiresInMs !== undefined && !isDuration(expiresInMs)) {
          throw new TurnloopError("INVALID_CONTENT", "`expiresInMs` must be a number of milliseconds");
        }
        const expiresAt = expiresInMs === undefined ? undefined : Math.trunc(clock.now() + expiresInMs);
        log.write("interaction/requested", defined({ id, kind, payload, callId, expiresAt }));
        known = log.state.interactions.get(id)!;
      }
      const resolution = known.resolved ?? (await new Promise<Resolution>((resolve) => waiting.set(id, resolve)));
      await settled();
      return resolution;
    },

    async respond(id, value) {
      const known = find(id);
      const answer = jsonCopy(value);
      checkAnswer(known.request.kind, answer);
      log.write("interaction/resolved", { id, outcome: "answered", value: answer });
      await stored();
    },

    async claim(id, client) {
      const known = find(id);
      if (known.claimedBy !== undefined)
        throw new TurnloopError("INTERACTION_CLAIMED", `${id} is run by somebody else`);
      log.write("interaction/claimed", { id, client });
      await stored();
    },

    cancel() {
      for (const { id } of openInteractions(log.state)) log.write("interaction/resolved", { id, outcome: "cancelled" });
    },

    reopen() {
      for (const interaction of openInteractions(log.state)) tell(interaction);
    },

    close() {
      for (const id of [...watching.keys()]) unwatch(id);
    },
  };
}
