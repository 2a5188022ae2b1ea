/** A Node host in a process of its own: `node node-host.ts <file> <port>`. Prints its port, then what its tools do. */
import { writeSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { hostAgents } from "../../adapters/host/node.ts";
import { nodeSqliteStorage } from "../../adapters/storage/node-sqlite.ts";
import { createHarness } from "../../src/index.ts";
import { agentsOf } from "./agents.ts";

const [file, port] = process.argv.slice(2) as [string, string];
// Written at once, so that whoever reads knows of it even if the next statement is the last.
const print = (value: unknown): void => void writeSync(1, `${JSON.stringify(value)}\n`);

const server = createServer();
const options = agentsOf(async (effect) => print(effect));
hostAgents(server, createHarness({ ...options, storage: nodeSqliteStorage(file) }), {
  authorize: () => ({ identity: "ann", rights: ["drive", "answer"] }),
  limits: { commandsPerSecond: 1000 },
});
server.listen(Number(port), "127.0.0.1", () => print((server.address() as AddressInfo).port));
