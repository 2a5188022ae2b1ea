/** The package without its watch: for logs that broke the promises before they came here. */
export { createHarness as unwatchedHarness } from "../../src/index.ts";
