/** D2: however opens, aborts, disposals and creations of one id cross, handles are counted right. */
import fc from "fast-check";
import type { AgentHandle } from "turnloop";
import { expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import { calm, toldBy } from "../support/lifecycle.ts";

type Act =
  | { readonly kind: "open"; readonly composes: number }
  | { readonly kind: "open and abort"; readonly after: number; readonly composes: number }
  | { readonly kind: "create" | "resume" }
  | { readonly kind: "dispose"; readonly which: number }
  | { readonly kind: "wait"; readonly ticks: number };

const ticks = fc.nat({ max: 12 });
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ kind: fc.constant("open" as const), composes: ticks }),
  fc.record({ kind: fc.constant("open and abort" as const), after: ticks, composes: ticks }),
  fc.record({ kind: fc.constantFrom("create" as const, "resume" as const) }),
  fc.record({ kind: fc.constant("dispose" as const), which: fc.nat({ max: 3 }) }),
  fc.record({ kind: fc.constant("wait" as const), ticks }),
);

async function pass(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await Promise.resolve();
}

/** What this has found: an open that lost to a create whose agent was gone again when it looked. */
const FOUND: Act[] = [
  { kind: "open", composes: 0 },
  { kind: "wait", ticks: 0 },
  { kind: "create" },
  { kind: "wait", ticks: 8 },
  { kind: "dispose", which: 0 },
];

local("D2 who holds a handle has a living agent, and nobody is left when all are disposed", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 12 }), async (acts) => {
      const harness = harnessWith();
      const told = toldBy(harness.hooks);
      const held: AgentHandle[] = [];
      const pending: Promise<void>[] = [];
      const failures: unknown[] = [];
      const refusals: unknown[] = [];
      const take = (handle: AgentHandle): void => {
        expect(handle.agent.status).not.toBe("disposed");
        held.push(handle);
      };
      for (const one of acts) {
        switch (one.kind) {
          case "open":
            pending.push(
              harness.agents
                .open({ id: "s", setup: () => pass(one.composes) })
                .then(take, (e) => void failures.push(e)),
            );
            break;
          case "open and abort": {
            const controller = new AbortController();
            const reason = new Error("enough");
            const { signal } = controller;
            const opening = harness.agents.open({ id: "s", signal, setup: () => pass(one.composes) });
            pending.push(opening.then(take, (error) => void (error === reason || failures.push(error))));
            void pass(one.after).then(() => controller.abort(reason));
            break;
          }
          case "create":
          case "resume":
            pending.push(harness.agents[one.kind]({ id: "s" }).then(take, (error) => void refusals.push(error.code)));
            break;
          case "dispose": {
            const [handle] = held.splice(one.which, 1);
            if (handle) pending.push(handle.dispose());
            break;
          }
          case "wait":
            await pass(one.ticks);
        }
      }
      await Promise.all(pending);
      await calm();
      expect(failures).toEqual([]);
      for (const code of refusals) expect(["SESSION_EXISTS", "SESSION_LIVE", "SESSION_NOT_FOUND"]).toContain(code);
      const live = harness.agents.get("s");
      expect(new Set(held.map((handle) => handle.agent))).toEqual(new Set(live ? [live] : []));
      expect(live?.status ?? "none").toBe(held.length > 0 ? "idle" : "none");
      for (const handle of held) await handle.dispose();
      expect(harness.agents.list()).toEqual([]);
      expect(harness.sessions.get("s")).toBeUndefined();
      const lives = told.filter((line) => /^session\/(created|disposed)/.test(line));
      expect(lives).toEqual(lives.map((_, n) => (n % 2 === 0 ? "session/created s" : "session/disposed s")));
      await harness.dispose();
    }),
    { numRuns: 300, examples: [[FOUND]] },
  );
});
