/**
 * A Node host under load, in a process of its own: `node host.ts <chunks> <a chunk each so many ms>`. Prints its port;
 * for each line that it reads, how large it is and how late its event loop was since the line before.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { hostAgents } from "../../adapters/host/node.ts";
import { createHarness, type Model } from "../../src/index.ts";

const [chunks, everyMs] = process.argv.slice(2).map(Number) as [number, number];
const print = (value: unknown): void => console.log(JSON.stringify(value));

const talker: Model = {
  id: "test/talker",
  async *stream() {
    for (let chunk = 0; chunk < chunks; chunk += 1) {
      await new Promise((resolve) => {
        setTimeout(resolve, everyMs);
      });
      yield { type: "delta", index: 0, text: `${chunk} ` };
    }
    yield { type: "finish", reason: { kind: "stop" } };
  },
};

const server = createServer();
hostAgents(server, createHarness({ model: talker }), {
  authorize: () => ({ identity: "ann", rights: ["drive"] }),
  limits: { maxBufferedBytes: 64 * 1024 },
});

const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();
createInterface(process.stdin).on("line", () => {
  const { rss, heapUsed } = process.memoryUsage();
  const ms = (nanoseconds: number): number => Math.round(nanoseconds / 1e5) / 10;
  print({
    rssMB: rss >> 20,
    heapMB: heapUsed >> 20,
    delayMs: { p50: ms(delay.percentile(50)), p99: ms(delay.percentile(99)), max: ms(delay.max) },
  });
  delay.reset();
});
server.listen(0, "127.0.0.1", () => print((server.address() as AddressInfo).port));
