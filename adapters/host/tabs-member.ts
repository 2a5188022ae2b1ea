/** A tab in the row of those that would lead: the lock is the lead, and its queue decides who is next. */
import { systemClock } from "../../src/core.ts";
import { aborted, type Lease } from "./tabs-lead.ts";
import { watchPresence } from "./tabs-presence.ts";

export interface Member {
  /** Whoever leads is silent: this tab takes the lead, unless it has it. */
  steal(): void;
  /** Out of the row. A lead that it has ends by itself. */
  leave(): void;
}

export interface MemberOptions {
  readonly name: string;
  /** The lead, from the moment of the grant to its end. */
  readonly lead: (lease: Lease) => Promise<void>;
  /** A lead has failed; another tab may do better, and this one tries again. */
  readonly failed: (thrown: unknown) => void;
}

const FIRST_WAIT_MS = 200;
const LAST_WAIT_MS = 10_000;

/** In the row at once, and as long as the page is at work. */
export function joinRow({ name, lead, failed }: MemberOptions): Member {
  const left = new AbortController();
  let waiting = new AbortController();
  let lost = new AbortController();
  let stealing = false;
  let leads = false;
  /** Resolves when the page is at work. */
  let present = Promise.resolve();
  let returned: (() => void) | undefined;

  const unwatch = watchPresence({
    leaves() {
      if (returned) return;
      present = new Promise((resolve) => (returned = resolve));
      waiting.abort();
      lost.abort();
    },
    returns() {
      returned?.();
      returned = undefined;
    },
  });

  /** One wait in the row, and the lead that it ends in. Rejects when that fails. */
  async function once(): Promise<void> {
    const stolen = stealing;
    stealing = false;
    waiting = new AbortController();
    const ended = (lost = new AbortController());
    let leading: Promise<void> | undefined;
    const granted = (): Promise<void> => {
      leads = true;
      leading = lead({ stolen, lost: ended.signal, present: () => present });
      // What is lost is given back before all is cleared away.
      return Promise.race([leading, aborted(ended.signal)]);
    };
    const signal = AbortSignal.any([waiting.signal, left.signal]);
    const request = navigator.locks.request(name, stolen ? { steal: true } : { signal }, granted);
    await request.catch((thrown: unknown) => {
      // Given up by the platform: somebody has stolen the lock, or the wait is over.
      ended.abort();
      if (!leading && !signal.aborted) throw thrown;
    });
    await leading?.finally(() => (leads = false));
  }

  async function run(): Promise<void> {
    for (let failures = 0; !left.signal.aborted;) {
      try {
        await present;
        await once();
        failures = 0;
      } catch (thrown) {
        failed(thrown);
        const wait = Math.min(FIRST_WAIT_MS * 2 ** failures, LAST_WAIT_MS);
        failures += 1;
        await systemClock.sleep(wait, left.signal).catch(() => {});
      }
    }
  }

  void run();
  return {
    steal() {
      if (leads || left.signal.aborted) return;
      stealing = true;
      waiting.abort();
    },
    leave() {
      left.abort();
      unwatch();
    },
  };
}
