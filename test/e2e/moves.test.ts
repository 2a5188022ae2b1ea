/** A session that moves from a page to an edge object, to a file, and home again. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stay, type Stay } from "../moves/stay.ts";
import { createMachine, type Machine, type Workerd } from "../workerd/workerd.ts";
import { startSite, type Site } from "./indexeddb-site.ts";
import type { MovesApi } from "./moves-page.ts";

let site: Site<MovesApi>;
let machine: Machine;
let workerd: Workerd;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "turnloop-moves-"));
  site = await startSite("test/e2e/moves-page.ts");
  machine = await createMachine();
  workerd = await machine.start();
});

afterAll(async () => {
  await workerd.kill();
  machine.destroy();
  await site.close();
  rmSync(folder, { recursive: true });
});

test("a session that began in Chromium goes on in a Durable Object, in a file of SQLite, and in Chromium again", async () => {
  const { call } = await (await site.start()).open();
  const stays: Stay[] = [await call("stay", "Chromium")];
  stays.push((await workerd.ask("edge", "stay", { place: "workerd" }, stays.at(-1))) as Stay);
  stays.push(await stay(nodeSqliteStorage(join(folder, "sessions.db")), "Node", stays.at(-1)));
  stays.push(await call("stay", "Chromium", stays.at(-1)));

  expect(stays.map(({ broken }) => broken)).toEqual([[], [], [], []]);
  expect(stays.map(({ requests }) => requests.length)).toEqual([3, 8, 13, 18]);
  expect(stays.map(({ ran }) => ran)).toEqual([["look"], ["pay", "look"], ["pay", "look"], ["pay", "look"]]);
  expect(stays.map(({ said }) => said)).toEqual([
    ["In Chromium it is done"],
    ["In workerd it is done", "In workerd I read: Greetings from Chromium", "In workerd it is done"],
    ["In Node it is done", "In Node I read: Greetings from workerd", "In Node it is done"],
    ["In Chromium it is done", "In Chromium I read: Greetings from Node", "In Chromium it is done"],
  ]);
  for (const [i, { lines }] of stays.slice(1).entries()) {
    const before = stays[i]!.lines;
    expect(lines.slice(0, before.length), `what ${i + 1} moves have left of the log`).toEqual(before);
  }
});
