/** V: changes of sessions that are stored or live: renamed and deleted (D26). */
import { createHarness, TurnloopError, type Claim, type SessionStorage } from "turnloop";
import { describe, expect } from "vitest";
import { failingStorage, faultyStage, holds, turnOfTheEventLoop } from "../support/failing-storage.ts";
import { harnessWith, local } from "../support/fixture.ts";
import { line, logOf, plainTurn, store, storageOf, turnStart, user } from "../support/made-log.ts";
import { deferred, typesOf } from "../support/wait.ts";

const code = (is: string): unknown => expect.objectContaining({ code: is });
const two = logOf(plainTurn(1), plainTurn(2));

/** A storage with leases, one of which somebody else has. */
function leased(inner: SessionStorage, taken: string): SessionStorage & { readonly claims: string[] } {
  const claims: string[] = [];
  return {
    ...inner,
    claims,
    async claim(id): Promise<Claim> {
      if (id === taken) throw new TurnloopError("SESSION_CLAIMED", "another writer has it");
      claims.push(`claim ${id}`);
      return { lost: new Promise(() => {}), release: async () => void claims.push(`release ${id}`) };
    },
  };
}

describe("rename", () => {
  local("D26 of a live session goes through its agent's log, and is stored on return", async () => {
    const { harness, open, storage } = faultyStage();
    const agent = await open();
    const heard: string[] = [];
    agent.on("session/titled", ({ data }) => void heard.push(data.title));
    storage.next(holds);
    const renamed = harness.sessions.rename("s", "Trip");
    expect(heard).toEqual(["Trip"]);
    await storage.tries(1);
    storage.heal();
    await renamed;
    expect(await storage.stored("s")).toMatchObject([{ type: "session/titled", data: { title: "Trip" } }]);
    expect((await harness.sessions.list()).sessions).toMatchObject([{ title: "Trip" }]);
  });

  local("D26 of a stored session appends to its log and changes nothing else, open turn or not", async () => {
    const open = logOf(plainTurn(1), turnStart(2), user("hello"));
    const storage = await storageOf(open);
    const { sessions, agents } = createHarness({ storage });
    await sessions.rename("s", "Trip");
    const session = (await sessions.load("s"))!;
    expect(session.events.slice(0, open.length)).toEqual(open);
    expect(session.events.slice(open.length)).toMatchObject([line("session/titled", { title: "Trip" })]);
    expect((await sessions.list()).sessions).toMatchObject([{ title: "Trip", seq: 9, status: "open" }]);
    expect(agents.list()).toEqual([]);
  });

  local("D26 SESSION_NOT_FOUND; and a title must be text", async () => {
    const { sessions } = createHarness({ storage: await storageOf(two) });
    await expect(sessions.rename("nobody", "t")).rejects.toEqual(code("SESSION_NOT_FOUND"));
    await expect(sessions.rename("s", 3 as never)).rejects.toEqual(code("INVALID_CONTENT"));
    expect((await sessions.load("s"))!.seq).toBe(12);
  });

  local("D26 takes the claim for as long as it writes, or fails SESSION_CLAIMED", async () => {
    const inner = await storageOf(two, "free");
    await store(inner, "taken", two);
    const storage = leased(inner, "taken");
    const { sessions } = createHarness({ storage });
    await sessions.rename("free", "Trip");
    expect(storage.claims).toEqual(["claim free", "release free"]);
    await expect(sessions.rename("taken", "Trip")).rejects.toEqual(code("SESSION_CLAIMED"));
    expect((await sessions.load("taken"))!.seq).toBe(12);
  });

  local("D26 of a session that is being opened does not cost that its log", async () => {
    const storage = failingStorage(await storageOf(two));
    const { sessions, agents } = harnessWith({ storage });
    const inSetup = deferred();
    const goOn = deferred();
    const opening = agents.open({ id: "s", setup: () => (inSetup.resolve(), goOn.promise) });
    await inSetup.promise;
    const renaming = sessions.rename("s", "Trip").catch(() => {});
    goOn.resolve();
    const { agent } = await opening;
    await renaming;
    agent.configure({ temperature: 0 });
    await agent.flush();
    expect(agent.session.durable).toBe("stored");
    expect(await storage.stored("s")).toEqual(agent.session.events);
  });

  local("#244 D26 two at once both take effect, one after the other", async () => {
    const storage = failingStorage(await storageOf(two));
    const { sessions } = createHarness({ storage });
    await Promise.all([sessions.rename("s", "First"), sessions.rename("s", "Second")]);
    expect((await storage.stored("s")).slice(12)).toMatchObject([
      line("session/titled", { title: "First" }),
      line("session/titled", { title: "Second" }),
    ]);
  });

  local("#244 D26 of a session that is opened meanwhile does not cost that its log", async () => {
    const storage = failingStorage(await storageOf(two));
    const { sessions, agents } = harnessWith({ storage });
    storage.next(holds);
    const renaming = sessions.rename("s", "Trip");
    await storage.tries(1);
    const opening = agents.open({ id: "s" });
    await turnOfTheEventLoop();
    storage.heal();
    await renaming;
    const { agent } = await opening;
    agent.configure({ temperature: 0 });
    await agent.flush();
    expect(agent.session.durable).toBe("stored");
    expect(await storage.stored("s")).toEqual(agent.session.events);
    expect(typesOf(agent.session).slice(12)).toEqual(["session/titled", "agent/configured"]);
  });

  local("#244 D26 one that fails does not stand in the way of the next", async () => {
    const storage = failingStorage(await storageOf(two));
    const { sessions } = harnessWith({ storage });
    storage.breakNext("load", new Error("the disk is busy"));
    const settled = await Promise.allSettled([sessions.rename("s", "First"), sessions.rename("s", "Second")]);
    expect(settled.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    expect((await sessions.list()).sessions).toMatchObject([{ title: "Second" }]);
  });
});

describe("delete", () => {
  local("D26 of a live session fails SESSION_LIVE", async () => {
    const { agents, sessions } = createHarness();
    const { agent, dispose } = await agents.open({ id: "s" });
    agent.inject("hello");
    await agent.flush();
    await expect(sessions.delete("s")).rejects.toEqual(code("SESSION_LIVE"));
    await dispose();
    await sessions.delete("s");
    expect(await sessions.load("s")).toBeUndefined();
    expect(await sessions.list()).toEqual({ sessions: [] });
  });

  local("D26 of one that is not stored is no error, and the id can be used anew", async () => {
    const { agents, sessions } = createHarness({ storage: await storageOf(two) });
    await sessions.delete("nobody");
    await sessions.delete("s");
    const { agent } = await agents.create({ id: "s" });
    expect(agent.session.seq).toBe(0);
  });

  local("D26 takes the claim, or fails SESSION_CLAIMED", async () => {
    const inner = await storageOf(two, "free");
    await store(inner, "taken", two);
    const storage = leased(inner, "taken");
    const { sessions } = createHarness({ storage });
    await sessions.delete("free");
    expect(storage.claims).toEqual(["claim free", "release free"]);
    await expect(sessions.delete("taken")).rejects.toEqual(code("SESSION_CLAIMED"));
    expect(await sessions.load("taken")).toBeDefined();
  });

  local(
    "#244 D26 and an opening at once: either it is opened and stays, or it begins anew; no log is lost",
    async () => {
      for (const deleteFirst of [true, false]) {
        const storage = failingStorage(await storageOf(two));
        const { sessions, agents } = harnessWith({ storage });
        const remove = (): Promise<string> =>
          sessions.delete("s").then(
            () => "deleted",
            (error: TurnloopError) => error.code,
          );
        const first = deleteFirst ? remove() : undefined;
        const opening = agents.open({ id: "s" });
        const removed = await (first ?? remove());
        const { agent } = await opening;
        agent.configure({ temperature: 0 });
        await agent.flush();
        expect(removed).toBe(deleteFirst ? "deleted" : "SESSION_LIVE");
        expect(agent.session.seq).toBe(deleteFirst ? 1 : 13);
        expect(await storage.stored("s")).toEqual(agent.session.events);
      }
    },
  );
});
