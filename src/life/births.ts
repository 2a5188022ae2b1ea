/** Agents on their way: what is waited for, and stopped, when their harness ends. */
import { createStoppable, type Stoppable } from "../agent/stoppable.ts";
import type { LifecycleOptions } from "../agent/types.ts";
import { TurnloopError } from "../errors.ts";
import { abortReason, type Owners } from "./lifecycle.ts";

export interface Births {
  /**
   * Makes an agent. The work is stopped by the signal and the owner of the options, and by the end of the
   * harness; once it is made, none of them reaches it any more.
   */
  bear<T>(options: LifecycleOptions, make: (work: Stoppable) => Promise<T>, work?: Stoppable): Promise<T>;
  /** Throws when nothing new may begin. */
  check(): void;
  /** Stops those on their way, and lets no other begin. */
  close(): void;
  /** Those on their way. */
  readonly pending: ReadonlySet<Promise<unknown>>;
}

export function createBirths(owners: Owners): Births {
  const pending = new Set<Promise<unknown>>();
  const working = new Set<Stoppable>();
  let closed: TurnloopError | undefined;

  const births: Births = {
    pending,

    async bear({ signal, owner }, make, work = createStoppable()) {
      births.check();
      if (signal?.aborted) throw abortReason(signal);
      const abort = (): void => work.stop(abortReason(signal!));
      signal?.addEventListener("abort", abort, { once: true });
      const orphan = (): void => {
        work.stop(new TurnloopError("AGENT_DISPOSED", `the owner ${owner!.id} was disposed`));
      };
      const offOwner = owner && owners.lives.get(owner)?.begun.onEnding?.(orphan);
      working.add(work);
      const birth = (async () => make(work))();
      pending.add(birth);
      try {
        return await birth;
      } finally {
        pending.delete(birth);
        working.delete(work);
        offOwner?.();
        signal?.removeEventListener("abort", abort);
      }
    },

    check() {
      if (closed) throw closed;
    },

    close() {
      closed ??= new TurnloopError("HARNESS_DISPOSED", "the harness is disposed; create another");
      for (const work of working) if (!work.failure) work.stop(closed);
    },
  };
  return births;
}
