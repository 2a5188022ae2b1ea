/** The last frame of a connection: why it ends. */
import type { HostFrame, WireError } from "./protocol.ts";
import type { Connection } from "./types.ts";

/** Says why, and closes. `retry`: another connection may do better. */
export function refuse(connection: Connection, { code, message }: WireError, retry: boolean): void {
  // An error as such would be `{}` in JSON but for its code.
  connection.send(JSON.stringify({ type: "closed", error: { code, message }, retry } satisfies HostFrame));
  connection.close(code);
}
