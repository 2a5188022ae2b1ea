/** What runs in the tabs of these tests, and in their SharedWorker: an agent whose tool is counted outside. */
import {
  createHarness,
  defineTool,
  type AgentHandle,
  type Diagnostic,
  type Harness,
  type Model,
  type SessionEvent,
} from "turnloop";
import { indexedDBStorage } from "turnloop/indexeddb";
import { openInTabs, serveTabs } from "turnloop/tabs";

export interface TabsPage {
  /** Answers `ok`, or a code. */
  open(options: OpenOptions): Promise<string>;
  /** Hands in a message of this id, and does not wait. */
  say(id: string, text: string): void;
  state(): TabState | undefined;
  /** The log as this tab has it. */
  log(): readonly SessionEvent[];
  /** Resolves when this tab has heard so many more events. */
  heard(more: number): Promise<void>;
  /** Resolves when this tab has so many events. */
  heardUpTo(seq: number): Promise<void>;
  /** Resolves when a turn has taken the message. */
  taken(id: string): Promise<void>;
  idle(): Promise<void>;
  cancel(): void;
  dispose(): Promise<void>;
  told(): readonly string[];
  /** Ends the SharedWorker from within, without a word to anybody. */
  endWorker(): void;
}

export interface OpenOptions {
  readonly id: string;
  /** Where the tool is counted. */
  readonly counter: string;
  readonly worker?: boolean;
}

export interface TabState {
  readonly status: string;
  readonly connection: string | undefined;
  readonly seq: number;
  readonly queue: readonly string[];
  readonly error: string | undefined;
  /** The agent runs in this tab. */
  readonly leads: boolean;
  readonly hidden: boolean;
  readonly frozen: boolean;
}

const WORKER = "worker";
const endWorkers = new BroadcastChannel("end the workers");
const told: string[] = [];
const onDiagnostic = ({ code }: Diagnostic): void => void told.push(code);

/** `talk` is answered with 5,000 pieces and no end, `flood` with 20,000 pieces, `charge <id>` with a call of the tool, all else with itself. */
const model: Model = {
  id: "of-the-tabs",
  async *stream({ messages }, { signal }) {
    const last = messages.at(-1)!;
    const block = last.role === "user" ? last.content.at(-1) : undefined;
    const text = block?.type === "text" ? block.text : "";
    const [verb, id] = text.split(" ");
    if (verb === "charge") {
      yield { type: "block-start", index: 0, block: { type: "tool-call", id: `call-${id}`, name: "charge" } };
      yield { type: "delta", index: 0, text: JSON.stringify({ id }) };
      yield { type: "finish", reason: { kind: "tool-calls" } };
      return;
    }
    if (verb === "talk" || verb === "flood") {
      for (let i = 0; !signal.aborted && i < (verb === "talk" ? 5000 : 20_000); i += 1) {
        yield { type: "delta", index: 0, text: `word ${i} ` };
        if (i % 10 === 0) await soon();
      }
      if (verb === "talk") await never();
    } else {
      yield { type: "delta", index: 0, text: last.role === "tool" ? "charged" : `answer to ${text}` };
    }
    yield { type: "finish", reason: { kind: "stop" } };
  },
};

const never = (): Promise<never> => new Promise(() => {});

/** The next turn of the event loop; timers of a hidden page are late. */
function soon(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.addEventListener("message", () => {
      port1.close();
      resolve();
    });
    port1.start();
    port2.postMessage(null);
  });
}

function makeHarness(counter: string): Harness {
  const charge = defineTool({
    name: "charge",
    description: "Is counted outside, each time it runs",
    inputSchema: { type: "object", properties: { id: { type: "string" } } },
    execute: async (args, call) => {
      const { id } = args as { id: string };
      // A browser may fail the request of a page that goes, which has time left to tell the model so.
      const response = await fetch(`${counter}${id}`, { method: "POST", signal: call.signal }).catch(never);
      return response.text();
    },
  });
  const storage = indexedDBStorage({ name: "tabs", onDiagnostic });
  return createHarness({ storage, model, tools: [charge], onDiagnostic });
}

function tab(): TabsPage {
  let harness: Harness | undefined;
  let handle: AgentHandle | undefined;
  let frozen = false;
  document.addEventListener("freeze", () => (frozen = true));
  document.addEventListener("resume", () => (frozen = false));
  const agent = (): AgentHandle["agent"] => handle!.agent;
  /** Resolves when there are so many events, and such a one. */
  const until = (fits: (event: SessionEvent) => boolean, seq = 0): Promise<void> =>
    new Promise((resolve) => {
      let found = false;
      const look = (event: SessionEvent): void => {
        found ||= fits(event);
        if (!found || agent().session.seq < seq) return;
        resolve();
        off.abort();
      };
      const off = new AbortController();
      agent().session.subscribe(look, { from: 0, signal: off.signal });
    });
  const worker = (counter: string): SharedWorker =>
    new SharedWorker("/page.js", { type: "module", name: `${WORKER} ${counter}` });

  return {
    async open({ id, counter, worker: inWorker = false }) {
      try {
        handle = await openInTabs(() => (harness ??= makeHarness(counter)), {
          id,
          name: "tabs",
          ...(inWorker && { worker: () => worker(counter) }),
        });
        return "ok";
      } catch (thrown) {
        return (thrown as { code: string }).code;
      }
    },
    say: (id, text) => void agent().send(text, { id }),
    state() {
      if (!handle) return undefined;
      const { status, connection, queue, error } = agent().getSnapshot();
      return {
        status,
        connection,
        seq: agent().session.seq,
        queue: queue.map((entry) => entry.id),
        error: error?.code,
        leads: harness?.agents.get(agent().id) !== undefined,
        hidden: document.hidden,
        frozen,
      };
    },
    log: () => agent().session.events,
    heard: (more) => until(() => true, agent().session.seq + more),
    heardUpTo: (seq) => until(() => true, seq),
    taken: (id) => until((event) => event.type === "user/message" && event.data.id === id),
    idle: () => agent().whenIdle(),
    cancel: () => agent().cancel("enough"),
    dispose: async () => handle?.dispose(),
    told: () => told,
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has no other origin
    endWorker: () => endWorkers.postMessage(null),
  };
}

if ("document" in globalThis) {
  Object.assign(globalThis, { page: tab() });
} else {
  // The inside of a worker, which this program's types do not know.
  const inside = globalThis as unknown as { readonly name: string; close(): void };
  serveTabs(makeHarness(inside.name.slice(WORKER.length + 1)));
  endWorkers.addEventListener("message", () => inside.close());
}
