/**
 * D24 at every moment: a turn with all kinds of calls and with steering is killed behind each of its events, once
 * and twice over, and goes on by itself when it is opened again. Nothing is lost, and nothing has run twice.
 */
import { createHarness, type HarnessOptions, type ModelRequest, type SessionEvent } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect } from "vitest";
import { tool } from "../support/calls.ts";
import { openWithEveryTool, script } from "../support/every-call.ts";
import { local } from "../support/fixture.ts";
import { mortal, storedEvents } from "../support/mortal.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { endOf, eventOf, typesOf } from "../support/wait.ts";

/** The answer by the place in the history, so that any life can go on with it. */
function answer({ messages }: ModelRequest): ScriptedAnswer {
  return script[messages.filter(({ role }) => role === "assistant").length] ?? "done again";
}

type Disk = HarnessOptions["storage"] & object;

/**
 * One life of the session; `ran` notes the bodies that ran in it. One whose mark is not on the disk would not have
 * run: its process is dead.
 */
async function life(disk: Disk, storage = disk) {
  const ran: string[] = [];
  const body =
    (name: string) =>
    async (_: unknown, { callId }: { readonly callId: string }) => {
      const isMark = (event: SessionEvent): boolean =>
        name === "where"
          ? event.type === "interaction/claimed" && event.data.id === `${callId}/client`
          : event.type === "tool/start" && event.data.callId === callId;
      if ((await storedEvents(disk)).some(isMark)) ran.push(name);
      return name;
    };
  const handle = await openWithEveryTool({ storage, interrupted: "continue" }, answer, body);
  return { ...handle, ran };
}

/** A life that dies behind the event. Answers with what ran in it, and what is left. */
async function killedAt(seq: number, disk = mortal().disk) {
  const { storage, killAt } = mortal(disk);
  killAt(seq);
  const { agent, ran, dispose } = await life(disk, storage);
  if (agent.session.events.every(({ type }) => type !== "inbox/queued")) {
    agent.send("go", { id: "m1" });
    agent.on("assistant/message", ({ data }) => void (data.step === 4 && agent.steer("and?", { id: "m2" })));
  }
  // It does not know that it is dead, and does all that it might have done.
  await agent.whenIdle();
  await dispose();
  return { disk, ran, stored: await storedEvents(disk) };
}

/** How many events the undisturbed turn has. */
async function whole(): Promise<number> {
  const { ran, stored } = await killedAt(Infinity);
  expect(ran.toSorted()).toEqual(["act", "look", "look", "pay", "where"]);
  return stored.length;
}

/** The last life: the turn that was left is completed, all that was accepted is in it, and nothing ran twice. */
async function ends(disk: Disk, ranBefore: readonly string[], moment: string) {
  const { agent, ran } = await life(disk);
  const { session } = agent;
  await agent.whenIdle();
  expect(endOf(session), moment).toEqual({ kind: "completed" });
  const said = session.events.filter(({ type }) => type === "user/message" || type === "steering/message");
  const accepted = dataOf(session, "inbox/queued").map(({ id }) => id);
  expect(said.map(({ data }) => (data as { id: string }).id).toSorted(), moment).toEqual(accepted);
  // Whatever was said was answered.
  expect(linesOf(session.deriveMessages()).at(-1), moment).toMatch(/^assistant: done/);
  const all = [...ranBefore, ...ran];
  for (const name of ["pay", "act", "where"]) {
    expect(
      all.filter((one) => one === name),
      `${name}, ${moment}`,
    ).not.toHaveLength(2);
  }
  expect(agent.interactions).toEqual([]);
  expect(agent.queue).toEqual([]);
  return session;
}

local("D24 killed behind any event, a turn goes on where it was, and nothing has run twice", async () => {
  const length = await whole();
  for (let seq = 0; seq < length; seq += 1) {
    const { disk, ran, stored } = await killedAt(seq);
    const session = await ends(disk, ran, `killed behind ${seq}: ${stored.at(-1)!.type}`);
    expect(session.events.slice(0, seq + 1)).toEqual(stored);
    expect(typesOf(session).filter((type) => type === "turn/end").length).toBeLessThan(3);
  }
});

local("D24 killed twice over, the second time at any of the events that follow, it still goes on", async () => {
  const length = await whole();
  for (let seq = 1; seq < length; seq += 3) {
    for (let more = 1; more < 12; more += 2) {
      const first = await killedAt(seq);
      const second = await killedAt(seq + more, first.disk);
      const moment = `killed behind ${seq}: ${first.stored.at(-1)!.type}, and ${seq + more}: ${second.stored.at(-1)!.type}`;
      await ends(second.disk, [...first.ran, ...second.ran], moment);
    }
  }
});

local(
  "D24 a parked turn is no attempt: killed in it as often as you like, it goes on when the answer comes",
  async () => {
    const asking = (storage: Disk) =>
      createHarness({
        storage,
        interrupted: "continue",
        model: scriptedModel(Array.from({ length: 2 }, () => answer)),
        onDiagnostic() {},
        tools: [tool("pay", () => "paid", { needsApproval: true }), tool("act")],
      }).agents.open({ id: "session" });
    const { disk } = mortal();
    for (let lives = 0; lives < 6; lives += 1) {
      const { storage, kill } = mortal(disk);
      const { agent } = await asking(storage);
      if (lives === 0) agent.send("go");
      await eventOf(agent.session, "interaction/requested");
      await agent.flush();
      kill();
    }
    const { agent } = await asking(disk);
    expect(typesOf(agent.session)).not.toContain("turn/resumed");
    await agent.respond(agent.interactions[0]!.id, { decision: "allow" });
    const paid = await eventOf(agent.session, "tool/result");
    expect(paid.data).toMatchObject({ isError: false, content: [{ text: "paid" }] });
  },
);
