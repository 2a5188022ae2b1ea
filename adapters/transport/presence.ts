/** Which clients are there, and who has been gone for so long that nobody waits for it any more. */
import type { Clock } from "../../src/core.ts";

export interface Presence {
  /** One connection of the client; the undo says that it is gone. */
  came(client: string): () => void;
  stop(): void;
}

export interface PresenceOptions {
  readonly clock: Clock;
  readonly graceMs: number;
  /** Whether anything waits for the client: for others no timer is kept. */
  readonly isMissed: (client: string) => boolean;
  /** The client has had no connection for `graceMs`. */
  readonly lapsed: (client: string) => void;
}

export function createPresence({ clock, graceMs, isMissed, lapsed }: PresenceOptions): Presence {
  const connected = new Map<string, number>();
  const leaving = new Map<string, AbortController>();

  function left(client: string): void {
    if (!isMissed(client)) return;
    const waited = new AbortController();
    leaving.set(client, waited);
    clock
      .sleep(graceMs, waited.signal)
      .then(() => {
        leaving.delete(client);
        lapsed(client);
      })
      // It came back; or the session takes nothing more, which whoever follows it is told.
      .catch(() => {});
  }

  return {
    came(client) {
      leaving.get(client)?.abort();
      leaving.delete(client);
      connected.set(client, (connected.get(client) ?? 0) + 1);
      return () => {
        const others = connected.get(client)! - 1;
        if (others > 0) return void connected.set(client, others);
        connected.delete(client);
        left(client);
      };
    },
    stop() {
      for (const waited of leaving.values()) waited.abort();
      leaving.clear();
    },
  };
}
