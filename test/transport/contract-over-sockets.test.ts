/** The contract, as far as it holds anywhere, over a WebSocket on loopback. */
import { contractOver, overSockets } from "../support/over.ts";

await contractOver(overSockets());
