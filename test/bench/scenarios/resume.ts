/** Opening a long log again: a thousand steps, each with a tool call behind ninety chunks of text. */
import { createHarness, memoryStorage, run, type SessionEvent, type SessionStorage } from "turnloop";
import type { FloorEvent } from "../floor.ts";
import { RESULT, toolModel } from "../mock.ts";
import { harnessOf, type Side } from "../side.ts";
import { repeat, timeOf, type Figure } from "../timing.ts";

const EVENTS = 100_000;
const STEPS = 1000;
const WORDS = 90;

export async function resume(side: Side): Promise<Figure[]> {
  const storage = memoryStorage();
  await writeLog(storage);
  const sample = await repeat(1000, () => (side === "floor" ? readAll(storage) : open(storage)));
  const row = `${EVENTS.toLocaleString("en-US")} events`;
  return [{ row, unit: "ms", median: sample.median, min: sample.min }];
}

async function writeLog(storage: SessionStorage): Promise<void> {
  const harness = harnessOf({ stream: toolModel(STEPS, WORDS), tool: () => RESULT, storage });
  const { agent } = await harness.agents.create({ id: "long" });
  await run(agent, "hi").result;
  await harness.dispose();
  const length = (await storage.load("long"))!.length;
  if (Math.abs(length - EVENTS) > EVENTS / 100) throw new Error(`the log has ${length} events`);
}

/** Until the agent stands ready, and its history is known. */
async function open(storage: SessionStorage): Promise<number> {
  const harness = createHarness({ storage });
  let messages = 0;
  const ms = await timeOf(async () => {
    const { agent } = await harness.agents.resume({ id: "long" });
    messages = agent.session.deriveMessages().length;
  });
  check(messages);
  await harness.dispose();
  return ms;
}

/** The events read into a log by hand, and the messages taken out of it. */
async function readAll(storage: SessionStorage): Promise<number> {
  let messages = 0;
  const ms = await timeOf(async () => {
    const log: FloorEvent[] = [];
    const history: SessionEvent[] = [];
    for await (const batch of (await storage.load("long"))!.batches) {
      for (const event of batch) {
        log.push(Object.freeze({ ...event }));
        if (event.surface !== undefined) history.push(event);
      }
    }
    messages = history.length;
  });
  check(messages);
  return ms;
}

function check(messages: number): void {
  if (messages !== 2 * STEPS + 2) throw new Error(`the history has ${messages} messages`);
}
