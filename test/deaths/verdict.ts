/** What those who survive have been told, and whether what is left agrees with it. */
import { expect } from "vitest";
import type { SessionEvent } from "turnloop";
import type { Examined } from "./examine.ts";
import { BUSY, hashOf, WAITING, type Told } from "./life.ts";

export interface Witness {
  hear(told: Told): void;
  /** All that must hold after a death. */
  judge(left: Examined): void;
  /** How often the tool of this name has run. */
  runsOf(tool: string): number;
}

type Of<K extends Told["kind"]> = Extract<Told, { kind: K }>;

export function createWitness(): Witness {
  const all: Told[] = [];
  const of = <K extends Told["kind"]>(kind: K): Of<K>[] => all.filter((told): told is Of<K> => told.kind === kind);

  function runsByCall(tool: string): Map<string, number> {
    const runs = new Map<string, number>();
    for (const { callId } of of("effect").filter((told) => told.tool === tool)) {
      runs.set(callId, (runs.get(callId) ?? 0) + 1);
    }
    return runs;
  }

  return {
    hear: (told) => void all.push(told),
    judge({ before, after, complaints, broken, interactions, answer }) {
      expect(complaints).toEqual([]);
      for (const id of [BUSY, WAITING] as const) {
        const log = after[id];
        expect(
          log.map(({ seq }) => seq),
          `the seqs of ${id}`,
        ).toEqual(log.map((_, i) => i));
        expect(hashOf(log.slice(0, before[id].length)), `what was stored of ${id}`).toBe(hashOf(before[id]));
      }
      for (const { id, from, to, hash } of of("stored")) {
        const range = `what was acknowledged of ${id}, from ${from} to ${to}`;
        expect(hashOf(after[id].slice(from, to)), range).toBe(hash);
      }
      for (const { interaction } of of("asked"))
        expect(interactions, "the questions that are open").toContain(interaction);
      const taken = new Set(after[BUSY].flatMap(messageIdOf));
      for (const { message } of of("accepted")) expect(taken, "the messages that were accepted").toContain(message);
      expect(broken).toEqual([]);
      expect(answer).toBe("Yes.");
      for (const [callId, runs] of runsByCall("charge")) {
        expect(runs, `the runs of ${callId}`).toBe(1);
        expect(codeOf(after[BUSY], callId), `the result of ${callId}, which has run`).not.toBe("TOOL_NOT_STARTED");
      }
    },
    runsOf: (tool) => [...runsByCall(tool).values()].reduce((sum, runs) => sum + runs, 0),
  };
}

/** The id of the message that the event took from the queue, or put there. */
function messageIdOf({ type, data }: SessionEvent): string[] {
  const { id } = data as { id?: unknown };
  return (type === "user/message" || type.startsWith("inbox/")) && typeof id === "string" ? [id] : [];
}

function codeOf(events: readonly SessionEvent[], callId: string): string | undefined {
  const result = events.find((event) => event.type === "tool/result" && event.data.callId === callId);
  return (result as SessionEvent<"tool/result"> | undefined)?.data.error?.code;
}
