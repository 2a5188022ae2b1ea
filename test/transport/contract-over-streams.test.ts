/** The contract, as far as it holds anywhere, over server-sent events and requests on loopback. */
import { contractOver, overStreams } from "../support/over.ts";

await contractOver(overStreams());
