/** Sessions in Durable Objects, in workerd itself: the contract of storages, an object for each test, and the bill. */
import { storageContract } from "turnloop/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createMachine, type Machine, type Workerd } from "./workerd.ts";

let machine: Machine;
let workerd: Workerd;

beforeAll(async () => {
  machine = await createMachine();
  workerd = await machine.start();
}, 60_000);

afterAll(async () => {
  await workerd.kill();
  machine.destroy();
});

const sentences: string[] = [];
storageContract({ test: (name) => void sentences.push(name) }, () => Promise.reject(new Error("it runs in workerd")));

test.each(sentences)(
  "%s",
  async (sentence) => expect(await workerd.ask(sentence, "contract", { sentence })).toBeNull(),
  60_000,
);

test("an append writes two rows, that of a new session a few more", async () => {
  const [first, ...others] = (await workerd.ask("bill", "bill")) as number[];
  expect(first).toBeLessThan(8);
  expect(others).toEqual(Array.from({ length: 9 }, () => 2));
});

test("an append that fails half-way leaves nothing behind", async () => {
  expect(await workerd.ask("fail", "fail")).toEqual({ failed: "STORAGE_FAILED", texts: ["first", "second"] });
});
