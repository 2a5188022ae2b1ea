/** The contract of transports, as tests for any runner: what a `Connection` promises, and what stands on it. */
import type { AgentHandle, Harness } from "../core.ts";
import { TurnloopError } from "../core.ts";
import { ACROSS } from "./transport-contract-across.ts";
import { PAIRS } from "./transport-contract-pairs.ts";

/** A connection, as `turnloop/transport` defines it. */
export interface ConnectionUnderTest {
  send(frame: string): void;
  readonly buffered?: number;
  onMessage(listener: (frame: string) => void): () => void;
  onClose(listener: (reason?: unknown) => void): () => void;
  close(reason?: string): void;
}

export interface TransportUnderTest {
  /** A new pair: what one sends the other gets. */
  pair(): Promise<{ readonly client: ConnectionUnderTest; readonly host: ConnectionUnderTest }>;
  /** Serves the harness with `serveAgents`; `dial` makes an accepted connection to one session, with every right. */
  serve(harness: Harness): Promise<{ dial(session: string): ConnectionUnderTest | Promise<ConnectionUnderTest> }>;
  /** `connectAgent` of `turnloop/transport`. */
  connect(options: {
    connect(): ConnectionUnderTest | Promise<ConnectionUnderTest>;
    session: string;
  }): Promise<AgentHandle>;
  destroy(): Promise<void>;
}

/** A sentence of the contract, and what shows that it holds: it throws when it does not. */
export interface TransportStatement {
  readonly sentence: string;
  check(transport: TransportUnderTest): Promise<void>;
}

/**
 * Hands one test for each sentence to `runner.test`. `make` gives each test a transport of its own. The tests
 * duplicate, delay and lose frames and cut connections, in orders that are the same at each run; some take a
 * second or two. A test fails with a TurnloopError coded CONTRACT_BROKEN.
 */
export function transportContract(
  runner: { test(name: string, body: () => Promise<void>): void },
  make: () => Promise<TransportUnderTest>,
): void {
  for (const { sentence, check } of [...PAIRS, ...ACROSS]) {
    runner.test(sentence, async () => {
      const transport = await make();
      try {
        await check(transport);
      } catch (cause) {
        const what = cause instanceof Error ? cause.message : String(cause);
        const message = `this transport does not keep the sentence "${sentence}": ${what}`;
        throw new TurnloopError("CONTRACT_BROKEN", message, { cause });
      } finally {
        await transport.destroy();
      }
    });
  }
}
