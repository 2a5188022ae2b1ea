/** The client's connection to its host: made, watched, and made again when it is gone. */
import { messageOf, TurnloopError, type Clock } from "../../src/core.ts";
import { createHeartbeat } from "./heartbeat.ts";
import { PING, PONG, readHostFrame, type ClientFrame, type HostFrame } from "./protocol.ts";
import type { Connection } from "./types.ts";
import { fromWire } from "./wire-error.ts";

export interface Link {
  /** Lost without a connection. */
  send(frame: ClientFrame): void;
  /** Ends it for good. */
  close(): void;
}

export interface LinkOptions {
  readonly connect: () => Connection | Promise<Connection>;
  readonly clock: Clock;
  readonly hello: () => ClientFrame;
  /** What it throws ends the connection: the host is not understood. */
  readonly frame: (frame: HostFrame) => void;
  /** So many characters have been taken. */
  readonly received: (length: number) => void;
  /** The connection is gone; another is on its way. */
  readonly lost: () => void;
  /** The host will never have it again. */
  readonly refused: (error: TurnloopError) => void;
}

const UNREADABLE: ReadonlySet<string> = new Set([
  "INVALID_HEADER",
  "UNKNOWN_EVENT",
  "UNKNOWN_VERSION",
  "VERSION_MISMATCH",
]);

const FIRST_WAIT_MS = 100;
const LAST_WAIT_MS = 5000;

export function createLink({ connect, clock, hello, frame, received, lost, refused }: LinkOptions): Link {
  const closed = new AbortController();
  let current: Connection | undefined;
  let failures = 0;

  /** One connection, from its opening to its end; answers with the error that forbids another. */
  async function once(): Promise<TurnloopError | undefined> {
    const connection = await connect();
    if (closed.signal.aborted) {
      connection.close();
      return undefined;
    }
    current = connection;
    let final: TurnloopError | undefined;
    await new Promise<void>((resolve) => {
      const heartbeat = createHeartbeat(
        clock,
        () => connection.send(PING),
        () => connection.close("nothing was heard of the host"),
      );
      const take = (text: string): void => {
        if (current !== connection) return;
        heartbeat.heard();
        if (text === PING) return connection.send(PONG);
        if (text === PONG) return;
        try {
          const read = readHostFrame(text);
          if (read.type !== "closed") {
            // All that was stored has come.
            if (read.type === "state") failures = 0;
            frame(read);
            if (read.type === "events") received(text.length);
            return;
          }
          if (!read.retry) final = fromWire(read.error);
        } catch (thrown) {
          // A gap is mended by another connection; what this version cannot read stays so.
          if (TurnloopError.is(thrown) && UNREADABLE.has(thrown.code)) final = thrown;
        }
        connection.close();
      };
      connection.onClose(() => {
        heartbeat.stop();
        if (current === connection) current = undefined;
        resolve();
      });
      connection.onMessage(take);
      connection.send(JSON.stringify(hello()));
    });
    return final;
  }

  async function run(): Promise<void> {
    while (!closed.signal.aborted) {
      let final: TurnloopError | undefined;
      try {
        final = await once();
      } catch (thrown) {
        if (TurnloopError.is(thrown, "UNAUTHORIZED")) final = thrown;
      }
      if (closed.signal.aborted) return;
      if (final) return refused(final);
      lost();
      const wait = Math.min(FIRST_WAIT_MS * 2 ** failures, LAST_WAIT_MS);
      failures += 1;
      // Not all at once when a host comes back.
      await clock.sleep(wait / 2 + (Math.random() * wait) / 2, closed.signal).catch(() => {});
    }
  }

  run().catch((thrown: unknown) => refused(new TurnloopError("LINK_FAILED", messageOf(thrown), { cause: thrown })));
  return {
    send: (out) => current?.send(JSON.stringify(out)),
    close() {
      closed.abort();
      current?.close("the handle was disposed");
    },
  };
}
