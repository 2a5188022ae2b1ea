/** Copies of a chat that go on otherwise: the chat itself stays as it is. */
import type { Agent, ContentBlock, SessionEvent } from "turnloop";
import { place, type Cut } from "./place.ts";

/** A copy that goes as far as the turn before this message. Answers with its id. */
export async function forkBefore(chat: string, message: string): Promise<string> {
  return copyOf(chat, { before: message });
}

/** A copy that goes as far as the end of this turn. Answers with its id. */
export async function forkAfter(agent: Agent, turn: number): Promise<string> {
  const at = agent.session.events.findLast((event) => event.type === "turn/end" && event.data.turn === turn)?.seq;
  return copyOf(agent.id, at === undefined ? {} : { at });
}

export interface Repeat {
  readonly id: string;
  /** What a person said to open the turn, to be said again. */
  readonly content: readonly ContentBlock[];
}

/** A copy that ends before this turn; undefined when no message opened it. */
export async function forkToRepeat(agent: Agent, turn: number): Promise<Repeat | undefined> {
  const said = saidIn(agent.session.events, turn);
  if (!said[0]) return undefined;
  return { id: await forkBefore(agent.id, said[0].data.id), content: said.flatMap(({ data }) => data.content) };
}

function saidIn(events: readonly SessionEvent[], turn: number): readonly SessionEvent<"user/message">[] {
  const start = events.findLastIndex((event) => event.type === "turn/start" && event.data.turn === turn);
  const end = events.findIndex((event, at) => at > start && event.type === "turn/end");
  const own = start < 0 ? [] : events.slice(start, end < 0 ? undefined : end);
  return own.filter((event) => event.type === "user/message");
}

async function copyOf(chat: string, cut: Cut): Promise<string> {
  const id = place.newId();
  await place.fork(chat, cut, id);
  return id;
}
