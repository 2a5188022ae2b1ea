/** Prints what the entries weigh, minified and gzipped: `npm run size`. */
import { weigh } from "./bundle.ts";

const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(2)} kB`;

console.log("The loop, the whole core entry, and the other entries without the core and their vendors.\n");
for (const { what, minified, gzipped } of await weigh()) {
  console.log(`${what.padEnd(20)}${kilobytes(minified).padStart(12)} min${kilobytes(gzipped).padStart(12)} min+gzip`);
}
