/** What is left after a death: reads the sessions, opens them, and talks with them. */
import { run, type Diagnostic, type SessionEvent, type SessionStorage } from "turnloop";
import { brokenPromises } from "../support/invariants.ts";
import { BUSY, harnessOn, WAITING, type Tell } from "./life.ts";

export interface Examined {
  /** What was stored of each session, before anything else was done, and what is in the end. */
  readonly before: Logs;
  readonly after: Logs;
  /** Whether the death came in the middle of a turn of the busy session. */
  readonly cut: boolean;
  /** What was told about the sessions while they were opened, talked with and closed. */
  readonly complaints: readonly string[];
  /** What an opened session breaks, in words. */
  readonly broken: readonly string[];
  /** The ids of the questions that are open. */
  readonly interactions: readonly string[];
  /** The answer to the next message. */
  readonly answer: string;
}

export type Logs = Readonly<Record<typeof BUSY | typeof WAITING, readonly SessionEvent[]>>;

export interface ExamineOptions {
  readonly interrupted: "close" | "continue";
  /** Whether what waits for a person is allowed, and waited for. */
  readonly allow: boolean;
  readonly tell: Tell;
}

export async function examine(
  storage: SessionStorage,
  { interrupted, allow, tell }: ExamineOptions,
): Promise<Examined> {
  const before = await readLogs(storage);
  const complaints: string[] = [];
  const onDiagnostic = ({ code, message }: Diagnostic): void => void complaints.push(`${code}: ${message}`);
  const harness = harnessOn(storage, { interrupted, tell, onDiagnostic });
  const busy = await harness.agents.open({ id: BUSY, claim: "wait" });
  const waiting = await harness.agents.open({ id: WAITING, claim: "wait" });
  const interactions = waiting.agent.interactions.map(({ id }) => id);
  await busy.agent.whenIdle();
  const { text: answer } = await run(busy.agent, "Are you there?").result;
  if (allow) {
    for (const id of interactions) await waiting.agent.respond(id, { decision: "allow" });
    await waiting.agent.whenIdle();
  }
  const broken = [busy, waiting].flatMap(({ agent }) => brokenPromises(agent.session, []));
  await harness.dispose();
  const boundary = before[BUSY].findLast(({ type }) => type === "turn/start" || type === "turn/end");
  const cut = boundary?.type === "turn/start";
  return { before, after: await readLogs(storage), cut, complaints, broken, interactions, answer };
}

async function readLogs(storage: SessionStorage): Promise<Logs> {
  return { [BUSY]: await read(storage, BUSY), [WAITING]: await read(storage, WAITING) };
}

async function read(storage: SessionStorage, id: string): Promise<SessionEvent[]> {
  const events: SessionEvent[] = [];
  for await (const batch of (await storage.load(id))?.batches ?? []) events.push(...batch);
  return events;
}
