/** A newcomer to a long session: its tail first, the rest on demand. */
import { createTranscript, run } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import { serve } from "./support.ts";

const LONG = Array.from({ length: 30 }, (_, i) => `answer ${i} ${"and more ".repeat(20)}`);

test("a tail begins with a turn, and loadEarlier brings the rest, piece by piece", async () => {
  const { connect } = serve({ model: scriptedModel([...LONG, "the last"]) });
  const { agent: whole } = await connect();
  for (let i = 0; i < LONG.length; i += 1) await run(whole, `question ${i}`).result;
  const { agent } = await connect({ history: "tail" });
  const { session } = agent;
  expect(session.start).toBeGreaterThan(0);
  expect(session.seq).toBe(whole.session.seq);
  expect(session.events).toEqual(whole.session.events.slice(session.start));
  expect(session.events[0]!.type).toBe("turn/start");
  const transcript = createTranscript(agent);
  expect(transcript.getSnapshot().messages.length).toBeLessThan(60);
  expect((await run(agent, "and now?").result).turn).toBe(31);
  let pieces = 0;
  for (; session.start > 0; pieces += 1) await session.loadEarlier!();
  expect(pieces).toBeGreaterThan(1);
  await whole.whenIdle();
  expect(session.events).toEqual(whole.session.events);
  expect(session.deriveMessages()).toEqual(whole.session.deriveMessages());
  expect(transcript.getSnapshot().messages).toHaveLength(62);
});

test("a tail knows what was queued before it", async () => {
  const { connect, harness } = serve({ model: scriptedModel([...LONG, { hang: "polite" }]) });
  const { agent: whole } = await connect();
  for (let i = 0; i < LONG.length; i += 1) await run(whole, `question ${i}`).result;
  whole.send("held");
  whole.send("waits", { id: "waits" });
  await whole.flush();
  const { agent } = await connect({ history: "tail" });
  expect(agent.queue).toEqual(harness.agents.get("s")!.queue);
  whole.cancel();
  await whole.whenIdle();
});
