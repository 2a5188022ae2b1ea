/** The verbs of a remote handle: checked here, put into the outbox, done at the host. */
import { configPatchOf, jsonCopy, outputSchemaOf, sayableOf, sourceOf, TurnloopError } from "../../src/core.ts";
import type { Agent, ContentInput, JsonValue, SendOptions } from "../../src/core.ts";
import type { Outbox } from "./outbox.ts";
import type { Command } from "./protocol.ts";
import type { Right } from "./types.ts";

export type Verbs = Pick<
  Agent,
  "send" | "steer" | "inject" | "continue" | "withdraw" | "cancel" | "respond" | "claim" | "configure"
>;

export interface VerbsOptions {
  readonly outbox: Outbox;
  readonly newId: () => string;
  readonly rights: () => readonly Right[];
  /** Throws AGENT_DISPOSED once the handle is. */
  readonly checkAlive: () => void;
  readonly isDisposed: () => boolean;
  /** Of what the handle shows: the last turn, whether that is open, and what is queued. */
  readonly seen: () => { readonly turn: number; readonly open: boolean; readonly queue: readonly string[] };
}

export function createVerbs({ outbox, newId, rights, checkAlive, isDisposed, seen }: VerbsOptions): Verbs {
  function check(right: Right): void {
    checkAlive();
    if (rights().includes(right)) return;
    throw new TurnloopError("UNAUTHORIZED", `this handle may not do that: its connection lacks the right \`${right}\``);
  }

  function say(kind: "send" | "steer" | "inject", content: ContentInput, options: SendOptions = {}): string {
    check("drive");
    const { id: given = newId(), source, output } = options;
    const id = String(given).toWellFormed();
    const schema = kind === "inject" || output === undefined ? undefined : outputSchemaOf(output);
    put({
      kind,
      id,
      content: sayableOf(content),
      ...(source !== undefined && { source: sourceOf(source) }),
      ...(schema && { output: schema }),
    });
    return id;
  }

  function put(command: Command): void {
    // A refusal is told by the snapshot, and by those that wait.
    outbox.add(command).catch(() => {});
  }

  return {
    send: (content, options) => say("send", content, options),
    steer: (content, options) => say("steer", content, options),
    inject: (content, options) => say("inject", content, options),

    continue({ id = newId() } = {}) {
      check("drive");
      const { turn, open } = seen();
      if (open) throw new TurnloopError("TURN_OPEN", `turn ${turn} is open; steer it, or wait for its end`);
      put({ kind: "continue", id, turn });
    },

    async withdraw(message) {
      check("drive");
      return (await outbox.add({ kind: "withdraw", id: newId(), message: String(message) })) === true;
    },

    cancel(reason = "cancelled", { queue = "drop", id = newId() } = {}) {
      if (isDisposed()) return;
      check("drive");
      const { turn, open, queue: queued } = seen();
      const continues = outbox.commands.filter(({ kind }) => kind === "continue").map((command) => command.id);
      const messages = [...queued, ...continues];
      if (!open && messages.length === 0) return;
      const why = String(reason).toWellFormed();
      put({ kind: "cancel", id, reason: why, queue, ...(open && { turn }), messages });
    },

    async respond(interaction, value) {
      check("answer");
      await outbox.add({
        kind: "respond",
        id: newId(),
        interaction: String(interaction),
        value: jsonCopy<JsonValue>(value),
      });
    },

    async claim(interaction) {
      check("answer");
      await outbox.add({ kind: "claim", id: newId(), interaction: String(interaction) });
    },

    configure(patch) {
      check("drive");
      put({ kind: "configure", id: newId(), patch: configPatchOf(patch) });
    },
  };
}
