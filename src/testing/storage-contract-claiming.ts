/** The port, about claims: kept by storages that have them, and empty for the rest. */
import type { Claim, SessionStorage } from "../core.ts";
import { broken, checkThat, checkRefused, failureOf, pause, type Statement } from "./storage-contract-kit.ts";

type ClaimingStorage = SessionStorage & Required<Pick<SessionStorage, "claim">>;

function hasClaims(storage: SessionStorage): storage is ClaimingStorage {
  return storage.claim !== undefined;
}

/** Whether it has settled after the medium was asked for other things. */
async function isSettled(work: Promise<unknown>, storage: SessionStorage): Promise<boolean> {
  let settled = false;
  void failureOf(work).then(() => (settled = true));
  for (let i = 0; i < 5 && !settled; i += 1) {
    await storage.list();
    await pause();
  }
  return settled;
}

export const CLAIMING: readonly Statement[] = [
  {
    sentence: "a claimed session is refused with SESSION_CLAIMED until it is released; other sessions are free",
    async check({ open }) {
      const [one, two] = [await open(), await open()];
      if (!hasClaims(one) || !hasClaims(two)) return;
      const claim = await one.claim("s", { mode: "fail" });
      await checkRefused(two.claim("s", { mode: "fail" }), "a second claim", "SESSION_CLAIMED");
      await checkRefused(one.claim("s", { mode: "fail" }), "a second claim by the same storage", "SESSION_CLAIMED");
      const other = await two.claim("other", { mode: "fail" });
      await claim.release();
      const next = await two.claim("s", { mode: "fail" });
      checkThat(!(await isSettled(next.lost, two)), "a claim that nobody stole was lost");
      await next.release();
      // Twice is no error.
      await next.release();
      await other.release();
    },
  },
  {
    sentence: "a claim can be waited for, and the wait can be given up",
    async check({ open }) {
      const [one, two] = [await open(), await open()];
      if (!hasClaims(one) || !hasClaims(two)) return;
      const claim = await one.claim("s", { mode: "wait" });
      const given = new AbortController();
      const left = failureOf(two.claim("s", { mode: "wait", signal: given.signal }));
      const waiting = two.claim("s", { mode: "wait" });
      checkThat(!(await isSettled(waiting, two)), "a claim that is held was given to another");
      given.abort();
      if (!(await left)) throw broken("a wait that was given up must reject");
      await claim.release();
      await (await waiting).release();
      await (await one.claim("s", { mode: "fail" })).release();
    },
  },
  {
    sentence: "a claim can be stolen: who had it is told, and its release does not free the thief's",
    async check({ open }) {
      const [one, two] = [await open(), await open()];
      if (!hasClaims(one) || !hasClaims(two)) return;
      const robbed: Claim = await one.claim("s", { mode: "fail" });
      const stolen = await two.claim("s", { mode: "steal" });
      await robbed.lost;
      await robbed.release();
      await checkRefused(one.claim("s", { mode: "fail" }), "a claim of what was stolen", "SESSION_CLAIMED");
      checkThat(!(await isSettled(stolen.lost, two)), "the thief's claim was lost");
      await stolen.release();
      await (await one.claim("s", { mode: "fail" })).release();
    },
  },
];
