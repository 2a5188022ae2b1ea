/** How far a session is stored: the only part of it that a client may see. */
import type { Session } from "../../src/core.ts";
import { soon } from "./soon.ts";

export interface StoredMark {
  /** All before this seq is stored. */
  readonly seq: number;
  stop(): void;
}

/**
 * Resolves when what is in the log now is stored; follows it from there. One look at a time: what is appended
 * meanwhile makes the next batch. `lost` when no more will ever be stored.
 */
export async function followStored(
  session: Session,
  advanced: () => void,
  lost: (error: unknown) => void,
): Promise<StoredMark> {
  let seq = session.seq;
  await session.flush();
  let looking = false;
  let stopped = false;

  async function look(): Promise<void> {
    while (!stopped && seq < session.seq) {
      const to = session.seq;
      await session.flush();
      if (stopped) return;
      seq = to;
      advanced();
    }
    looking = false;
  }

  function wake(): void {
    if (looking || stopped || seq >= session.seq) return;
    looking = true;
    soon(() => {
      look().catch((error: unknown) => {
        if (!stopped) lost(error);
      });
    });
  }

  const off = session.subscribe(wake);
  wake();
  return {
    get seq() {
      return seq;
    },
    stop() {
      stopped = true;
      off();
    },
  };
}
