/** A host in a process of its own, until it is killed: `node node-process.ts <file> <port>`. Prints the port it listens on. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { createHarness, type Model } from "../../src/index.ts";
import { hostAgents } from "../../adapters/host/node.ts";
import { nodeSqliteStorage } from "../../adapters/storage/node-sqlite.ts";

const [file, port] = process.argv.slice(2) as [string, string];

/** Says many words, each in a turn of the event loop of its own. */
const talker: Model = {
  id: "talker",
  async *stream() {
    yield { type: "block-start", index: 0, block: { type: "text" } };
    for (let word = 0; word < 200; word += 1) {
      await turn();
      yield { type: "delta", index: 0, text: `${word} ` };
    }
    yield { type: "block-end", index: 0 };
    yield { type: "finish", reason: { kind: "stop" } };
  },
};

const server = createServer();
hostAgents(server, createHarness({ model: talker, storage: nodeSqliteStorage(file), onDiagnostic() {} }), {
  authorize: () => ({ identity: "ann", rights: ["drive", "answer"] }),
});
server.listen(Number(port), "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
