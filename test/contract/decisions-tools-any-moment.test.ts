/**
 * D18, D22, D23 at every moment: a turn with all kinds of calls is cut off behind each of its events, by a death,
 * a disposal and a cancel. Whatever the moment, the log is whole, the conversation goes on, and nothing that may
 * not run twice has run twice.
 */
import type { Agent, HarnessOptions, ModelRequest } from "turnloop";
import type { ScriptedAnswer } from "turnloop/testing";
import { expect } from "vitest";
import { openWithEveryTool, script } from "../support/every-call.ts";
import { local } from "../support/fixture.ts";
import { mortal, storedEvents } from "../support/mortal.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { endOf } from "../support/wait.ts";

/** The answer by the place in the history, so that any life can go on with it. */
function answer({ messages }: ModelRequest): ScriptedAnswer {
  const last = messages.findLastIndex(({ role }) => role === "user");
  if (linesOf(messages.slice(last, last + 1))[0] !== "user: go") return "fine";
  return script[messages.slice(last).filter(({ role }) => role === "assistant").length]!;
}

/** One life of the session; `ran` notes the bodies that ran in it, for as long as `counts`. */
async function life(storage: HarnessOptions["storage"] & object, counts: () => boolean = () => true) {
  const ran: string[] = [];
  const body = (name: string) => () => {
    if (counts()) ran.push(name);
    return name;
  };
  const handle = await openWithEveryTool({ storage }, answer, body);
  return { ...handle, ran };
}

/** Sends once more, and sees that it is answered. */
async function goesOn(agent: Agent): Promise<void> {
  await agent.whenIdle();
  agent.send("again");
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  expect(linesOf(agent.session.deriveMessages()).at(-1)).toBe("assistant: fine");
  expect(agent.interactions).toEqual([]);
  expect(agent.queue).toEqual([]);
}

/** How many events the undisturbed turn has. */
async function whole(): Promise<number> {
  const { storage } = mortal();
  const { agent, ran } = await life(storage);
  agent.send("go");
  await agent.whenIdle();
  expect(ran.toSorted()).toEqual(["act", "look", "look", "pay", "where"]);
  return agent.session.seq;
}

/** What must not run twice ran once at most. */
function onceAtMost(ran: readonly string[], moment: string): void {
  for (const name of ["pay", "act", "where"]) {
    expect(
      ran.filter((one) => one === name),
      `${name}, ${moment}`,
    ).not.toHaveLength(2);
  }
}

local("D22 D23 killed behind any event, a session is whole again and nothing has run twice", async () => {
  const length = await whole();
  for (let seq = 0; seq < length; seq += 1) {
    const { storage, disk, dead, killAt } = mortal();
    let alive = true;
    killAt(seq);
    void dead.then(() => (alive = false));
    const first = await life(storage, () => alive);
    first.agent.send("go");
    await dead;
    const stored = await storedEvents(disk);
    expect(stored).toHaveLength(seq + 1);

    const second = await life(disk);
    expect(second.agent.session.events.slice(0, seq + 1)).toEqual(stored);
    await goesOn(second.agent);
    onceAtMost([...first.ran, ...second.ran], `killed behind ${seq}: ${stored.at(-1)!.type}`);
    expect(dataOf(second.agent.session, "user/message")).toHaveLength(2);
  }
});

local("D18 D23 disposed behind any event, a session is whole again and nothing has run twice", async () => {
  const length = await whole();
  for (let seq = 0; seq < length; seq += 1) {
    const { storage } = mortal();
    const first = await life(storage);
    let ended: Promise<void> | undefined;
    first.agent.session.subscribe((event) => void (event.seq === seq && (ended = first.dispose())));
    first.agent.send("go");
    await first.agent.whenIdle();
    await ended;
    expect(await storedEvents(storage)).toEqual(first.agent.session.events);

    const second = await life(storage);
    await goesOn(second.agent);
    onceAtMost([...first.ran, ...second.ran], `disposed behind ${seq}: ${first.agent.session.at(seq)!.type}`);
  }
});

local("D18 D16 cancelled behind any event of its turn, a turn ends as aborted and the next one runs", async () => {
  const length = await whole();
  for (let seq = 1; seq < length; seq += 1) {
    const { storage } = mortal();
    const { agent, ran } = await life(storage);
    agent.session.subscribe((event) => void (event.seq === seq && agent.cancel("enough")));
    agent.send("go");
    await agent.whenIdle();
    const type = agent.session.at(seq)!.type;
    if (type !== "turn/end") {
      expect(endOf(agent.session), `cancelled behind ${seq}: ${type}`).toEqual({ kind: "aborted", reason: "enough" });
    }
    await goesOn(agent);
    onceAtMost(ran, `cancelled behind ${seq}: ${type}`);
  }
});
