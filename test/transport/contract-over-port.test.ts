/** The contract, as far as it holds anywhere, over a message port. */
import { contractOver, overPort } from "../support/over.ts";

await contractOver(overPort);
