/** The last frame of a connection: why it ends. */
import type { HostFrame, WireError } from "./protocol.ts";
import type { Connection } from "./types.ts";

/** Says why, and closes. `retry`: another connection may do better. */
export function refuse(connection: Connection, error: WireError, retry: boolean): void {
  connection.send(JSON.stringify({ type: "closed", error, retry } satisfies HostFrame));
  connection.close(error.code);
}
