/** What the tests of the contract are written against: an agent, wherever it runs. */
import { createHarness, type Agent, type Harness, type HarnessOptions, type OpenAgentOptions } from "turnloop";
import { test } from "vitest";

/** What an agent is opened with. `host` is what runs it; the rest is the agent's own. */
export interface Stage extends HarnessOptions {
  readonly id?: string;
  readonly open?: Omit<OpenAgentOptions, "id">;
}

/** Opens an agent, and gives the handle that a holder of it has. */
export type OpenAgent = (stage: Stage) => Promise<Agent>;

const openLocal: OpenAgent = async ({ id = "session", open, ...options }) => {
  const { agents } = createHarness({ onDiagnostic() {}, ...options });
  const { agent } = await agents.open({ id, ...open });
  return agent;
};

/** How the tests that hold anywhere get their handles, unless they are of an agent that runs right here. */
let way: OpenAgent | undefined;

/** What `load` defines is for handles of this way; what needs the loop in its own frame is left out. */
export async function through(open: OpenAgent, load: () => Promise<void>): Promise<void> {
  way = open;
  await load();
  way = undefined;
}

/**
 * A test that uses only what any holder of the handle can see and do: it will hold for a remote agent too.
 * The name begins with the numbers of the contract: `"#67 cancel drops what is queued"`.
 */
export function anywhere(name: string, body: (open: OpenAgent) => Promise<void>): void {
  const open = way ?? openLocal;
  test(name, () => body(open));
}

/** A test that needs hooks, the harness, or a call from inside the loop's own frame. */
export function local(name: string, body: () => Promise<void> | void): void {
  const define = way ? leftOut : test;
  define(name, body);
}

function leftOut(): void {}

/** A harness that keeps its diagnostics. */
export function harnessWith(
  options: HarnessOptions = {},
): Harness & { readonly diagnostics: readonly { code: string; message: string }[] } {
  const diagnostics: { code: string; message: string }[] = [];
  const harness = createHarness({ onDiagnostic: (diagnostic) => diagnostics.push(diagnostic), ...options });
  return Object.assign(harness, { diagnostics });
}
