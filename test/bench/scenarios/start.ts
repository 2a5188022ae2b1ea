/** The start of a process that imports the package, against one that imports nothing. */
import { execFileSync } from "node:child_process";
import { sampleOf, type Figure } from "../timing.ts";
import type { Side } from "../side.ts";

const TIMES = 7;

/** The clock of a process begins with it. */
const TELL = "process.stdout.write(String(performance.now()))";

export async function start(side: Side): Promise<Figure[]> {
  const program = side === "floor" ? TELL : `import "turnloop"; ${TELL}`;
  const once = (): number => Number(execFileSync(process.execPath, ["--input-type=module", "--eval", program]));
  // The first time the files are not in the system's cache.
  once();
  return [{ row: "import, fresh process", unit: "ms", ...sampleOf(Array.from({ length: TIMES }, once)) }];
}
