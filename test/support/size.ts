/** Prints what the entries weigh, minified and gzipped: `npm run size`. */
import { weigh, weighPolicies, type Weight } from "./bundle.ts";

const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(2)} kB`;

console.log("The loop, the whole core entry, and the other entries without the core and their vendors.\n");
print(await weigh());
console.log("\nThe policies, each on top of the loop.\n");
print(await weighPolicies());

function print(weights: readonly Weight[]): void {
  for (const { what, minified, gzipped } of weights) {
    console.log(`${what.padEnd(20)}${kilobytes(minified).padStart(12)} min${kilobytes(gzipped).padStart(12)} min+gzip`);
  }
}
