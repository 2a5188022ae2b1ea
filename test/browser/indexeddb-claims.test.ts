/** The right to write: Web Locks say who has it, and the database holds whoever lost it off. */
import { expect, test } from "vitest";
import { append, codeOf, events, newName, openStorage, stored } from "./indexeddb-parts.ts";

test("one writer at a time: the next one is refused, or waits until it is released", async () => {
  const name = newName();
  const [one, two] = [openStorage(name), openStorage(name)];
  const first = await one.claim!("s", { mode: "fail" });
  expect(await codeOf(two.claim!("s", { mode: "fail" }))).toBe("SESSION_CLAIMED");
  await (await two.claim!("other", { mode: "fail" })).release();
  const waiting = two.claim!("s", { mode: "wait" });
  await first.release();
  const second = await waiting;
  expect(await codeOf(one.claim!("s", { mode: "fail" }))).toBe("SESSION_CLAIMED");
  await second.release();
  await (await one.claim!("s", { mode: "fail" })).release();
});

test("databases of other names have claims of their own", async () => {
  const [one, two] = [openStorage(), openStorage()];
  const claim = await one.claim!("s", { mode: "fail" });
  expect(await codeOf(two.claim!("s", { mode: "fail" }))).toBe("resolved");
  await claim.release();
});

test("who waits can be called off, before and meanwhile", async () => {
  const name = newName();
  const [one, two] = [openStorage(name), openStorage(name)];
  const reason = new Error("enough");
  await expect(two.claim!("s", { mode: "wait", signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  const first = await one.claim!("s", { mode: "fail" });
  const calling = new AbortController();
  const waiting = two.claim!("s", { mode: "wait", signal: calling.signal });
  calling.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  await first.release();
  await (await one.claim!("s", { mode: "fail" })).release();
});

test("who was stolen from is told, and cannot write any more, even before the thief has written", async () => {
  const name = newName();
  const [victim, thief] = [openStorage(name), openStorage(name)];
  const claim = await victim.claim!("s", { mode: "fail" });
  await append(victim, "s", 0, 5);
  const stolen = await thief.claim!("s", { mode: "steal" });
  await claim.lost;
  expect(await codeOf(append(victim, "s", 5, 1))).toBe("SESSION_CONFLICT");
  expect(await stored(thief, "s")).toEqual(events(0, 5));
  await append(thief, "s", 5, 1);
  await claim.release();
  expect(await codeOf(victim.claim!("s", { mode: "fail" }))).toBe("SESSION_CLAIMED");
  await stolen.release();
});

test("who claims and loads it again after the theft writes again", async () => {
  const name = newName();
  const [victim, thief] = [openStorage(name), openStorage(name)];
  const claim = await victim.claim!("s", { mode: "fail" });
  await append(victim, "s", 0, 5);
  const stolen = await thief.claim!("s", { mode: "steal" });
  await claim.lost;
  await stolen.release();
  const again = await victim.claim!("s", { mode: "fail" });
  expect(await stored(victim, "s")).toEqual(events(0, 5));
  await append(victim, "s", 5, 1);
  await again.release();
});
