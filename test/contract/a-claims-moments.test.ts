/**
 * D25 at every await of an opening and of an end: whatever stops it there, a claim is held by a live agent or by
 * nobody, and the session can be opened again.
 */
import { TurnloopError, type AgentHandle, type HarnessOptions } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { claimingStorage, type ClaimingStorage } from "../support/claims.ts";
import { harnessWith, local } from "../support/fixture.ts";
import { calm, promptly, store } from "../support/lifecycle.ts";
import { endOf } from "../support/wait.ts";

function process(storage: ClaimingStorage, options: HarnessOptions = {}) {
  return harnessWith({ storage, model: scriptedModel(["one", "two"]), ...options });
}

async function microtasks(count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) await Promise.resolve();
}

/** More than any opening here takes. */
const MOMENTS = 60;

/** An opening that something meets after so many microtasks. Answers with the handle, or with what it was refused with. */
async function met(opening: Promise<AgentHandle>, moment: number, act: () => unknown): Promise<AgentHandle | unknown> {
  const result = opening.then(
    (handle) => handle,
    (thrown: unknown) => thrown,
  );
  await microtasks(moment);
  await act();
  return promptly(result);
}

const isHandle = (result: unknown): result is AgentHandle =>
  typeof result === "object" && result !== null && "dispose" in result;

/** Somebody else can take it up, and finds all of it. */
async function goesOn(storage: ClaimingStorage, moment: number): Promise<void> {
  await calm();
  expect(storage.held("s"), `at ${moment}`).toBe(false);
  const { agent, dispose } = await process(storage).agents.open({ id: "s" });
  agent.send("again");
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  await dispose();
  expect(storage.held("s")).toBe(false);
}

for (const stored of [true, false]) {
  const what = stored ? "a stored session" : "a new one";

  local(`D25 an opening of ${what} that is aborted at any await leaves no claim`, async () => {
    let aborted = 0;
    for (let moment = 0; moment < MOMENTS; moment += 1) {
      const storage = claimingStorage();
      if (stored) await store(storage, "s");
      const controller = new AbortController();
      const opening = process(storage).agents.open({ id: "s", signal: controller.signal, async setup() {} });
      const result = await met(opening, moment, () => controller.abort(new Error("never mind")));
      if (isHandle(result)) await result.dispose();
      else aborted += 1;
      await goesOn(storage, moment);
    }
    expect(aborted).toBeGreaterThan(5);
    expect(aborted).toBeLessThan(MOMENTS);
  });

  local(`D25 an opening of ${what} whose harness ends at any await leaves no claim`, async () => {
    for (let moment = 0; moment < MOMENTS; moment += 1) {
      const storage = claimingStorage();
      if (stored) await store(storage, "s");
      const harness = process(storage);
      await met(harness.agents.open({ id: "s", async setup() {} }), moment, () => promptly(harness.dispose()));
      await goesOn(storage, moment);
    }
  });

  local(`D25 an opening of ${what} that is robbed at any await is lost, and the thief has it`, async () => {
    for (let moment = 0; moment < MOMENTS; moment += 1) {
      const storage = claimingStorage();
      if (stored) await store(storage, "s");
      let thief: AgentHandle | undefined;
      const robbed = process(storage);
      const result = await met(robbed.agents.open({ id: "s", async setup() {} }), moment, async () => {
        if (storage.held("s")) thief = await process(storage).agents.open({ id: "s", claim: "steal" });
      });
      await calm();
      if (thief) {
        if (isHandle(result)) expect(result.agent.session.durable, `at ${moment}`).toBe("lost");
        else expect(TurnloopError.is(result, "SESSION_LOST"), `at ${moment}: ${String(result)}`).toBe(true);
        expect(storage.held("s")).toBe(true);
        expect(thief.agent.session.durable).toBe("stored");
        await thief.dispose();
      }
      await robbed.dispose();
      await goesOn(storage, moment);
    }
  });
}

local("D25 D24 a turn that is robbed at any await goes on with the thief, and the robbed agent ends", async () => {
  for (let moment = 0; moment < 150; moment += 3) {
    const storage = claimingStorage();
    const first = await process(storage).agents.open({ id: "s" });
    first.agent.send("hello", { id: "m1" });
    await first.agent.flush();
    await microtasks(moment);
    const { agent } = await process(storage).agents.open({ id: "s", claim: "steal", interrupted: "continue" });
    await promptly(first.agent.whenIdle());
    expect(first.agent.session.durable).toBe("lost");
    await agent.whenIdle();
    expect(endOf(agent.session), `at ${moment}`).toEqual({ kind: "completed" });
    expect(agent.session.events.filter(({ type }) => type === "user/message")).toHaveLength(1);
    await agent.flush();
    expect(agent.session.durable).toBe("stored");
    await promptly(first.dispose());
  }
});

local("D2 D25 an opening at any moment of an end waits for it, and gets the claim", async () => {
  for (let moment = 0; moment < MOMENTS; moment += 1) {
    const storage = claimingStorage();
    const { agents } = process(storage);
    const { agent, dispose } = await agents.open({ id: "s" });
    agent.send("hello");
    const ending = dispose();
    await microtasks(moment);
    const again = await agents.open({ id: "s" });
    await ending;
    expect(again.agent, `at ${moment}`).not.toBe(agent);
    expect(storage.held("s")).toBe(true);
    await again.agent.whenIdle();
    await again.dispose();
    expect(storage.held("s")).toBe(false);
  }
});
