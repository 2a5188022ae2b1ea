/** What the tests of the contract are written against: an agent, wherever it runs. */
import { createHarness, type Agent, type Harness, type HarnessOptions, type OpenAgentOptions } from "turnloop";
import { connectAgent, messagePort, serveAgents, type Grant } from "turnloop/transport";
import { onTestFinished, test } from "vitest";

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

/** The peer is this program itself: it says who speaks. */
const SELF: Grant = { identity: null, rights: ["drive", "answer"] };

/** The same agent, by a handle at the other end of a real message port. */
const openOverPort: OpenAgent = async ({ id = "session", open, ...options }) => {
  const harness = createHarness({ onDiagnostic() {}, ...options });
  await harness.agents.open({ id, ...open });
  const server = serveAgents(harness);
  const { agent, dispose } = await connectAgent({
    session: id,
    onDiagnostic() {},
    connect() {
      const { port1, port2 } = new MessageChannel();
      // Without a heartbeat at the host: some of these tests look at the timers of its clock.
      server.accept({ ...messagePort(port1), watched: true }, SELF, id);
      return messagePort(port2);
    },
  });
  onTestFinished(async () => {
    await dispose();
    await server.close();
  });
  return agent;
};

/** `TURNLOOP_OVER=port`: each of these tests runs once more, with a remote handle. */
const WAYS: readonly (readonly [string, OpenAgent])[] = [
  ["", openLocal],
  ...(globalThis.process?.env["TURNLOOP_OVER"] === "port" ? [[" (over a port)", openOverPort] as const] : []),
];

/**
 * A test that uses only what any holder of the handle can see and do: it will hold for a remote agent too.
 * The name begins with the numbers of the contract: `"#67 cancel drops what is queued"`.
 */
export function anywhere(name: string, body: (open: OpenAgent) => Promise<void>): void {
  for (const [how, open] of WAYS) test(name + how, () => body(open));
}

/** A test that needs hooks, the harness, or a call from inside the loop's own frame. */
export function local(name: string, body: () => Promise<void> | void): void {
  test(name, body);
}

/** A harness that keeps its diagnostics. */
export function harnessWith(
  options: HarnessOptions = {},
): Harness & { readonly diagnostics: readonly { code: string; message: string }[] } {
  const diagnostics: { code: string; message: string }[] = [];
  const harness = createHarness({ onDiagnostic: (diagnostic) => diagnostics.push(diagnostic), ...options });
  return Object.assign(harness, { diagnostics });
}
