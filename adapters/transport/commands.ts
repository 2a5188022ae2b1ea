/** The verbs of remote handles at the host: each takes effect once, however often it is sent. */
import { checkAnswer, configPatchOf, jsonCopy, TurnloopError } from "../../src/core.ts";
import type { Agent, JsonValue, MessageSource, Session, SessionEvent } from "../../src/core.ts";
import type { Command } from "./protocol.ts";
import type { Right } from "./types.ts";

/** Who sends a command. */
export interface Sender {
  readonly rights: readonly Right[];
  /** Names the handle, for what it claims. */
  readonly client: string;
  /** Undefined for a peer that says itself who speaks. */
  readonly source: MessageSource | undefined;
}

export interface Commands {
  /** Takes effect before it returns; resolves when that is stored. Rejects as the verb does, and UNAUTHORIZED. */
  take(command: Command, sender: Sender): Promise<Outcome>;
}

export interface Outcome {
  /** What the verb answers. */
  readonly value: JsonValue | undefined;
  /** All that came of it stands before this seq. */
  readonly seq: number;
}

/** How many outcomes are kept for those who ask again; an older one is found in the log. */
const KEPT = 1000;

export function createCommands(agent: Agent, session: Session): Commands {
  const outcomes = new Map<string, Promise<Outcome>>();
  const logged = loggedCommands(session);
  /** Under another host: whether that was this very command, the log does not tell. */
  const withdrawn = new Set(logged().withdrawn);
  /** The turns without a message that were asked for, and have not begun. */
  const continuing = new Set<string>();

  /** Throws for what the verb refuses; answers with what to wait for besides the storage. */
  function apply(command: Command, { client, source }: Sender): Promise<JsonValue | undefined> | undefined {
    const by = source ?? USER;
    switch (command.kind) {
      case "send":
      case "steer":
      case "inject": {
        const { kind, id, content, output } = command;
        const from = source ?? command.source;
        agent[kind](content, { id, ...(from && { source: from }), ...(output && { output }) });
        return undefined;
      }
      case "continue":
        return goOn(command);
      case "withdraw":
        if (withdrawn.has(command.message)) return Promise.resolve(true);
        return agent.withdraw(command.message);
      case "cancel":
        if (isMeant(command)) agent.cancel(command.reason, { queue: command.queue, id: command.id });
        return undefined;
      case "respond": {
        const { id, interaction } = command;
        const value = jsonCopy(command.value);
        const open = agent.interactions.find((one) => one.id === interaction);
        // The agent knows why it is not open.
        if (!open) return agent.respond(interaction, value).then(() => undefined);
        checkAnswer(open.kind, value);
        session.append("interaction/resolved", { id: interaction, outcome: "answered", value, by, command: id });
        return undefined;
      }
      case "claim": {
        const { id, interaction } = command;
        const open = agent.interactions.find((one) => one.id === interaction);
        if (!open || open.claimedBy !== undefined) return agent.claim(interaction).then(() => undefined);
        session.append("interaction/claimed", { id: interaction, client, command: id });
        return undefined;
      }
      case "configure": {
        const patch = configPatchOf(command.patch);
        session.append("agent/configured", { patch, command: command.id });
        return undefined;
      }
    }
  }

  /** Once a later turn stands in the log, the one that was asked for has begun, or its moment has passed. */
  async function goOn({ id, turn }: Extract<Command, { kind: "continue" }>): Promise<undefined> {
    if (lastTurn(session) > turn) return undefined;
    agent.continue({ id });
    continuing.add(id);
    await new Promise<void>((resolve) => {
      const off = agent.on("turn/start", () => resolve());
      void agent.whenIdle().then(() => {
        off();
        resolve();
      });
    });
    continuing.delete(id);
    return undefined;
  }

  /** A cancel ends only what its sender saw: that turn, or the one that has taken what was asked for there. */
  function isMeant({ turn, messages }: Extract<Command, { kind: "cancel" }>): boolean {
    const open = openTurn(session);
    if (turn !== undefined && open?.turn === turn) return true;
    if (turn !== undefined && open === undefined && lastTurn(session) > turn) return false;
    const awaited = new Set([...continuing, ...agent.queue.map((entry) => entry.id)]);
    if (open?.command !== undefined) awaited.add(open.command);
    return messages.some((id) => awaited.has(id) || open?.messages?.includes(id) === true);
  }

  async function stored(answer: Promise<JsonValue | undefined> | undefined): Promise<Outcome> {
    const value = await answer;
    const { seq } = session;
    await session.flush();
    return { value, seq };
  }

  async function run(command: Command, sender: Sender): Promise<Outcome> {
    return stored(logged().ids.has(command.id) ? undefined : apply(command, sender));
  }

  return {
    take(command, sender) {
      const needed = command.kind === "respond" || command.kind === "claim" ? "answer" : "drive";
      if (!sender.rights.includes(needed)) {
        const message = `${command.kind} needs the right \`${needed}\`, which this connection does not have`;
        return Promise.reject(new TurnloopError("UNAUTHORIZED", message));
      }
      const known = outcomes.get(command.id);
      if (known) return known;
      const outcome = run(command, sender);
      outcomes.set(command.id, outcome);
      if (outcomes.size > KEPT) outcomes.delete(outcomes.keys().next().value!);
      return outcome;
    },
  };
}

const USER: MessageSource = Object.freeze({ kind: "user" });

interface Logged {
  readonly ids: ReadonlySet<string>;
  readonly withdrawn: ReadonlySet<string>;
}

/** What was done, by this host or one before: each call reads on from where the last one ended. */
function loggedCommands(session: Session): () => Logged {
  const ids = new Set<string>();
  const withdrawn = new Set<string>();
  let seq = 0;

  function read(event: SessionEvent): void {
    switch (event.type) {
      case "turn/start":
      case "interaction/claimed":
      case "interaction/resolved":
      case "agent/configured":
        if (event.data.command !== undefined) ids.add(event.data.command);
        break;
      case "agent/cancelled":
        ids.add(event.data.id);
        break;
      case "inbox/dropped":
        if (event.data.reason === "withdrawn") for (const id of event.data.ids) withdrawn.add(id);
        break;
      default:
    }
  }

  return () => {
    while (seq < session.seq) read(session.at(seq++)!);
    return { ids, withdrawn };
  };
}

function openTurn(session: Session): SessionEvent<"turn/start">["data"] | undefined {
  for (let seq = session.seq - 1; seq >= 0; seq -= 1) {
    const event = session.at(seq)!;
    if (event.type === "turn/end") return undefined;
    if (event.type === "turn/start") return event.data;
  }
  return undefined;
}

function lastTurn(session: Session): number {
  for (let seq = session.seq - 1; seq >= 0; seq -= 1) {
    const event = session.at(seq)!;
    if (event.type === "turn/end" || event.type === "turn/start") return event.data.turn;
  }
  return 0;
}
