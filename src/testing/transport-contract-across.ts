/** The contract of transports: what an agent is worth across one, on a good line and on a bad one. */
import { createHarness, run, type Agent, type AgentHandle, type Harness, type Model } from "../core.ts";
import { scriptedModel } from "./scripted-model.ts";
import { holds, MANY_FAULTS, numbersFrom, same, withFaults } from "./transport-contract-kit.ts";
import type { ConnectionUnderTest, TransportStatement, TransportUnderTest } from "./transport-contract.ts";

const SESSION = "across";
const SEEDS = [1, 2, 3, 4, 5, 6];

interface Served {
  readonly harness: Harness;
  /** A handle; `bend` may put a bad line in the place of each connection. */
  connect(bend?: (connection: ConnectionUnderTest) => ConnectionUnderTest): Promise<AgentHandle>;
  /** What the host has of the session. */
  readonly log: () => readonly unknown[];
}

/** Everything that was opened ends with the test. */
async function served(transport: TransportUnderTest, model: Model, body: (served: Served) => Promise<void>) {
  const harness = createHarness({ model, onDiagnostic() {} });
  const handles: AgentHandle[] = [];
  try {
    const { dial } = await transport.serve(harness);
    await body({
      harness,
      log: () => harness.agents.get(SESSION)?.session.events ?? [],
      async connect(bend = (connection) => connection) {
        const handle = await transport.connect({ connect: async () => bend(await dial(SESSION)), session: SESSION });
        handles.push(handle);
        return handle;
      },
    });
  } finally {
    await Promise.all(handles.map(({ dispose }) => dispose()));
    await harness.dispose();
  }
}

/** When the handle has all that the host has. */
function caughtUp({ session }: Agent, log: () => readonly unknown[]): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (session.seq < log().length) return;
      queueMicrotask(() => off());
      resolve();
    };
    const off = session.subscribe(look);
    look();
  });
}

const answers = (count: number): string[] => Array.from({ length: count }, (_, i) => `answer ${i} in a few words`);
const texts = (agent: Agent): string[] =>
  agent.session.events.flatMap((event) =>
    event.type === "user/message" ? event.data.content.map((block) => (block.type === "text" ? block.text : "")) : [],
  );

export const ACROSS: readonly TransportStatement[] = [
  {
    sentence: "a handle sends, follows its turn, and has the very log of the host",
    check: (transport) =>
      served(transport, scriptedModel(answers(2)), async ({ connect, log }) => {
        const { agent } = await connect();
        same((await run(agent, "one").result).text, "answer 0 in a few words", "the first answer");
        same((await run(agent, "two").result).text, "answer 1 in a few words", "the second answer");
        same(agent.session.events, log(), "the log");
      }),
  },
  {
    sentence: "who comes late has all that was, and all handles see the same",
    check: (transport) =>
      served(transport, scriptedModel(answers(2)), async ({ connect, log }) => {
        const first = await connect();
        await run(first.agent, "one").result;
        const second = await connect();
        same(second.agent.session.events, log(), "the log of the second handle");
        await run(second.agent, "two").result;
        await caughtUp(first.agent, log);
        same(first.agent.session.events, log(), "the log of the first handle");
      }),
  },
  {
    sentence: "a connection that is cut in the middle of an answer goes on without a gap or a duplicate",
    check: (transport) =>
      served(transport, scriptedModel(answers(1)), async ({ connect, log }) => {
        const lines: ConnectionUnderTest[] = [];
        const { agent } = await connect((connection) => (lines.push(connection), connection));
        const seqs: number[] = [];
        agent.session.subscribe((event) => {
          seqs.push(event.seq);
          if (event.type === "assistant/chunk" && lines.length === 1) lines[0]!.close("cut");
        });
        agent.send("go");
        await agent.whenIdle();
        holds(lines.length > 1, "nothing was cut");
        same(
          seqs,
          Array.from(log(), (_, i) => i),
          "the seqs that were told",
        );
        same(agent.session.events, log(), "the log");
      }),
  },
  {
    sentence: "a disconnected client cancels nothing",
    check: (transport) =>
      served(transport, scriptedModel(answers(1)), async ({ connect, harness }) => {
        const { agent, dispose } = await connect();
        agent.send("go");
        await agent.flush();
        const local = harness.agents.get(SESSION)!;
        await dispose();
        await local.whenIdle();
        const end = local.session.events.at(-1);
        same(end?.type === "turn/end" && end.data.reason, { kind: "completed" }, "the end of the turn");
      }),
  },
  {
    sentence: "a cancel from afar ends the turn",
    check: (transport) =>
      served(transport, scriptedModel([{ text: "on and on", hang: "deaf" }]), async ({ connect }) => {
        const { agent } = await connect();
        agent.on("assistant/chunk", () => agent.cancel("enough"));
        const { reason } = await run(agent, "go").result;
        same(reason, { kind: "aborted", reason: "enough" }, "the end of the turn");
      }),
  },
  ...SEEDS.map((seed): TransportStatement => ({
    sentence: `over a bad line every message is taken once and in order (${seed})`,
    check: (transport) =>
      served(transport, scriptedModel(answers(40)), async ({ connect, log }) => {
        const random = numbersFrom(seed);
        const { agent } = await connect((connection) => withFaults(connection, random, MANY_FAULTS));
        const told: number[] = [];
        agent.session.subscribe((event) => void told.push(event.seq));
        const sent = Array.from({ length: 12 }, (_, i) => `message ${i}`);
        for (const [i, text] of sent.entries()) {
          agent.send(text);
          if (i % 3 === 2) await agent.whenIdle();
        }
        agent.configure({ temperature: 0.5 });
        await agent.flush();
        await agent.whenIdle();
        await caughtUp(agent, log);
        same(texts(agent), sent, "the messages");
        same(agent.session.events, log(), "the log");
        same(
          told,
          Array.from(log(), (_, i) => i),
          "the seqs that were told",
        );
        const configured = agent.session.events.filter((event) => event.type === "agent/configured");
        same(configured.length, 1, "how often it was configured");
      }),
  })),
];
