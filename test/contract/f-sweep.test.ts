/** F, with E: whenever a message comes, it is delivered once, or said to be dropped; nothing is lost between two microtasks. */
import { run, type SessionView } from "turnloop";
import { expect } from "vitest";
import { local } from "../support/fixture.ts";
import { dataOf } from "../support/scene.ts";
import { everyMoment } from "../support/sweep.ts";

/** What has become of a message, in the words of the log. */
function fateOf(session: SessionView, id: string): string[] {
  return session.events.flatMap(({ type, data }) => {
    if (type === "inbox/dropped" && data.ids.includes(id)) return [type];
    if (type === "agent/cancelled" && data.dropped.includes(id)) return [type];
    if (type === "user/message" || type === "steering/message" || type === "context/message") {
      return data.id === id ? [type] : [];
    }
    return [];
  });
}

/** How often each fate has come. */
function tally(fates: readonly (readonly string[])[]): string[] {
  return [...new Set(fates.map((fate) => fate.join(" + ")))].toSorted();
}

for (const [verb, ways] of [
  ["send", ["user/message"]],
  ["steer", ["steering/message", "user/message"]],
  ["inject", ["context/message"]],
] as const) {
  local(`#56 #59 #61 #65 #99 whenever ${verb} comes, its message is delivered, once`, async () => {
    const fates: string[][] = [];
    for await (const { agent } of everyMoment()) {
      agent[verb]("more", { id: "more" });
      await agent.whenIdle();
      fates.push(fateOf(agent.session, "more"));
      expect(fateOf(agent.session, "go")).toEqual(["user/message"]);
      expect(agent.queue).toEqual([]);
      expect(dataOf(agent.session, "turn/end").map(({ reason }) => reason.kind)).not.toContain("error");
    }
    expect(tally(fates)).toEqual(ways);
  });
}

local("#90 D13 whenever withdraw comes, it says the truth", async () => {
  const answers = new Set<boolean>();
  for await (const { agent, microtasks } of everyMoment()) {
    agent.send("more", { id: "more" });
    for (let i = 0; i < microtasks; i += 1) await Promise.resolve();
    const withdrawn = await agent.withdraw("more");
    answers.add(withdrawn);
    await agent.whenIdle();
    expect(fateOf(agent.session, "more")).toEqual([withdrawn ? "inbox/dropped" : "user/message"]);
  }
  expect(answers).toEqual(new Set([true, false]));
});

for (const queue of ["drop", "keep"] as const) {
  local(`D14 D15 #78 whenever a cancel comes that is to ${queue} the queue, each message has one fate`, async () => {
    const fates: string[][] = [];
    const last: string[][] = [];
    for await (const { agent } of everyMoment()) {
      agent.send("more", { id: "more" });
      agent.cancel("enough", { queue });
      agent.send("last", { id: "last" });
      await agent.whenIdle();
      fates.push(fateOf(agent.session, "go"), fateOf(agent.session, "more"));
      last.push(fateOf(agent.session, "last"));
      expect(agent.queue).toEqual([]);
    }
    expect(tally(fates)).toEqual(queue === "keep" ? ["user/message"] : ["agent/cancelled", "user/message"]);
    expect(tally(last)).toEqual(["user/message"]);
  });
}

local("D30 whenever a run is aborted, its result says what the log says of the message", async () => {
  const kinds = new Set<string>();
  for await (const { agent, microtasks } of everyMoment()) {
    const controller = new AbortController();
    const running = run(agent, "more", { signal: controller.signal });
    for (let i = 0; i < microtasks; i += 1) await Promise.resolve();
    controller.abort();
    const { reason, turn } = await running.result;
    kinds.add(reason.kind);
    await agent.whenIdle();
    const fate = fateOf(agent.session, running.id);
    expect(fate).toEqual([reason.kind === "dropped" ? "inbox/dropped" : "user/message"]);
    if (turn !== undefined) {
      const end = dataOf(agent.session, "turn/end").find((one) => one.turn === turn);
      expect(end?.reason).toEqual(reason);
    }
    expect(fateOf(agent.session, "go")).toEqual(["user/message"]);
  }
  expect([...kinds].toSorted()).toEqual(["aborted", "completed", "dropped"]);
});

local("#79 #80 whenever somebody waits for idle, all that was sent before is done when they are told", async () => {
  for await (const { agent } of everyMoment()) {
    await agent.whenIdle();
    expect(agent.status).toBe("idle");
    expect(fateOf(agent.session, "go")).toEqual(["user/message"]);
    expect(dataOf(agent.session, "turn/end")).toHaveLength(1);
  }
});
