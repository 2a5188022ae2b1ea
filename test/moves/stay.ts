/** A session that travels: what it does at each place, and the luggage that it takes along. */
import { createHarness, defineTool, run, type Model, type ModelChunk, type SessionStorage } from "turnloop";
import { brokenPromises, placeOf, type SeenRequest } from "../support/invariants.ts";

export interface Luggage {
  /** What `export` gave. */
  readonly lines: readonly string[];
  /** All that a model was sent, at this place and at those before. */
  readonly requests: readonly SeenRequest[];
}

export interface Stay extends Luggage {
  /** The tools that ran here, by name. */
  readonly ran: readonly string[];
  /** What the agent said here. */
  readonly said: readonly string[];
  /** What the session breaks here, in words: also a request that is rebuilt as another. */
  readonly broken: readonly string[];
}

const ID = "traveller";

/**
 * Arrives with an open question and a message that waits, answers both, talks, uses a tool; leaves with another
 * question and another message, and nothing stays behind.
 */
export async function stay(storage: SessionStorage, place: string, luggage?: Luggage): Promise<Stay> {
  const requests = [...(luggage?.requests ?? [])];
  const ran: string[] = [];
  const said: string[] = [];
  const tool = (name: string, needsApproval: boolean) =>
    defineTool({
      name,
      description: `${name}, in ${place}`,
      inputSchema: { type: "object" },
      needsApproval,
      async execute() {
        ran.push(name);
        return { place };
      },
    });
  const model: Model = {
    id: "test/traveller",
    async *stream(request) {
      requests.push({ ...placeOf(agent.session)!, json: JSON.stringify(request) });
      yield* answerTo(request.messages, place);
    },
  };
  const harness = createHarness({ storage, model, tools: [tool("look", false), tool("pay", true)], onDiagnostic() {} });
  harness.prompt.section({ name: "place", text: `You are in ${place}.` });
  if (luggage) await harness.sessions.import(luggage.lines, { move: true });
  const { agent } = await harness.agents.open({ id: ID });
  agent.on("assistant/message", ({ data }) => {
    for (const block of data.content) if (block.type === "text") said.push(block.text);
  });

  for (const { id } of agent.interactions) await agent.respond(id, { decision: "allow" });
  await agent.whenIdle();
  await run(agent, "look").result;
  const asked = Promise.withResolvers<void>();
  agent.subscribe(() => agent.interactions.length > 0 && asked.resolve());
  agent.send("pay");
  await asked.promise;
  agent.send(`Greetings from ${place}`);
  await agent.flush();

  const lines: string[] = [];
  for await (const line of harness.sessions.export(ID)) lines.push(line);
  const broken = brokenPromises(agent.session, requests);
  await harness.dispose();
  await storage.delete(ID);
  return { lines, requests, ran, said, broken };
}

type Messages = Parameters<Model["stream"]>[0]["messages"];

/** Calls the tool that the last message names; to any other it says what it has read. */
function* answerTo(messages: Messages, place: string): Generator<ModelChunk> {
  const last = messages.at(-1)!;
  const text = last.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  if (last.role === "user" && (text === "look" || text === "pay")) {
    yield { type: "block-start", index: 0, block: { type: "tool-call", name: text } };
    yield { type: "delta", index: 0, text: "{}" };
    yield { type: "block-end", index: 0 };
    yield { type: "finish", reason: { kind: "tool-calls" } };
  } else {
    for (const word of [`In ${place}`, last.role === "tool" ? " it is done" : ` I read: ${text}`])
      yield { type: "delta", index: 0, text: word };
    yield { type: "finish", reason: { kind: "stop" } };
  }
}
