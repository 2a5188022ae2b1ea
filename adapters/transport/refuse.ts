/** Turns somebody away who has a connection and no right to one. */
import type { TurnloopError } from "../../src/core.ts";
import type { HostFrame } from "./protocol.ts";
import type { Connection } from "./types.ts";
import { toWire } from "./wire-error.ts";

/** Says why, and ends the connection. `retry`: another one may do better. */
export function refuse(connection: Connection, error: TurnloopError, retry: boolean): void {
  connection.send(JSON.stringify({ type: "closed", error: toWire(error), retry } satisfies HostFrame));
  connection.close(error.code);
}
