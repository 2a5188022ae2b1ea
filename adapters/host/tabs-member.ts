/** A tab in the row of those that would lead: the lock is the lead, and its queue decides who is next. */
import { systemClock } from "../../src/core.ts";

export interface Member {
  /** Whoever leads is silent: this tab takes the lead, unless it has it. */
  steal(): void;
  /** Out of the row. A lead that it has ends by itself. */
  leave(): void;
}

export interface MemberOptions {
  readonly name: string;
  /** The lead, from the moment of the grant to its end. `stolen`: it was taken from a tab that did not answer. */
  readonly lead: (stolen: boolean, lost: AbortSignal) => Promise<void>;
  /** A lead has failed; another tab may do better, and this one tries again. */
  readonly failed: (thrown: unknown) => void;
}

const FIRST_WAIT_MS = 200;
const LAST_WAIT_MS = 10_000;

/** In the row at once. */
export function joinRow({ name, lead, failed }: MemberOptions): Member {
  const left = new AbortController();
  let waiting = new AbortController();
  let stealing = false;
  let leads = false;

  /** One wait in the row, and the lead that it ends in. Rejects when that fails. */
  async function once(): Promise<void> {
    const stolen = stealing;
    stealing = false;
    waiting = new AbortController();
    const lost = new AbortController();
    let leading: Promise<void> | undefined;
    const granted = (): Promise<void> => {
      leads = true;
      return (leading = lead(stolen, lost.signal));
    };
    const signal = AbortSignal.any([waiting.signal, left.signal]);
    // The platform gives up the request when the lock is stolen, or the wait is over; the lead has its own end.
    const request = navigator.locks.request(name, stolen ? { steal: true } : { signal }, granted);
    await request.catch((thrown: unknown) => {
      lost.abort();
      if (!leading && !signal.aborted) throw thrown;
    });
    await leading?.finally(() => (leads = false));
  }

  async function run(): Promise<void> {
    for (let failures = 0; !left.signal.aborted;) {
      try {
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
    leave: () => left.abort(),
  };
}
