/** Measures one scenario for one side in this process, and prints the figures as JSON. */
import { scenarios } from "./scenarios.ts";
import type { Side } from "./side.ts";

const [name, side] = process.argv.slice(2);
const figures = await scenarios[name!]!.measure(side as Side);
// A turn that nothing could cancel would keep the process alive.
process.stdout.write(JSON.stringify(figures), () => process.exit());
