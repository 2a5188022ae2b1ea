/** The contract of transports: what a connection itself promises. */
import { closeOf, framesOf, holds, pause, same } from "./transport-contract-kit.ts";
import type { TransportStatement } from "./transport-contract.ts";

const ODD = ["", "{}", "ünïcode 漢字 👩‍👩‍👧 \u0000 \u2028", JSON.stringify({ text: "line\nline" })];

export const PAIRS: readonly TransportStatement[] = [
  {
    sentence: "frames arrive whole and in their order, both ways",
    async check({ pair }) {
      const { client, host } = await pair();
      const frames = [...ODD, ...Array.from({ length: 200 }, (_, i) => `frame ${i}`)];
      const there = framesOf(host, frames.length);
      const back = framesOf(client, frames.length);
      for (const frame of frames) {
        client.send(frame);
        host.send(frame);
      }
      same(await there, frames, "what the host got");
      same(await back, frames, "what the client got");
    },
  },
  {
    sentence: "a frame of a million characters arrives whole",
    async check({ pair }) {
      const { client, host } = await pair();
      const frame = "漢字 and text. ".repeat(70_000);
      const there = framesOf(host, 1);
      client.send(frame);
      const [got] = await there;
      holds(got === frame, "it came otherwise");
    },
  },
  {
    sentence: "what is sent before the other side listens is not lost",
    async check({ pair }) {
      const { client, host } = await pair();
      client.send("early");
      await pause();
      same(await framesOf(host, 1), ["early"], "what the host got");
    },
  },
  {
    sentence: "a listener that was taken off hears nothing more",
    async check({ pair }) {
      const { client, host } = await pair();
      const heard: string[] = [];
      const off = host.onMessage((frame) => void heard.push(frame));
      const first = framesOf(host, 1);
      client.send("one");
      await first;
      off();
      const second = framesOf(host, 1);
      client.send("two");
      await second;
      same(heard, ["one"], "what it heard");
    },
  },
  {
    sentence: "a close is told to both sides, once, behind the frames that were sent before it",
    async check({ pair }) {
      const { client, host } = await pair();
      const told: string[] = [];
      client.onMessage((frame) => void told.push(frame));
      client.onClose(() => void told.push("client closed"));
      host.onClose(() => void told.push("host closed"));
      const closed = Promise.all([closeOf(client), closeOf(host)]);
      host.send("last words");
      host.close("enough");
      host.close("enough");
      await closed;
      await pause();
      same(told.toSorted(), ["client closed", "host closed", "last words"], "what was told");
      holds(told.indexOf("last words") < told.indexOf("client closed"), "the close overtook the last frame");
    },
  },
  {
    sentence: "a close by the client is told to the host",
    async check({ pair }) {
      const { client, host } = await pair();
      const closed = closeOf(host);
      client.close();
      await closed;
    },
  },
  {
    sentence: "a closed connection takes frames without a word, and nothing arrives",
    async check({ pair }) {
      const { client, host } = await pair();
      const heard: string[] = [];
      host.onMessage((frame) => void heard.push(frame));
      const closed = closeOf(host);
      client.close();
      client.send("too late");
      host.send("too late");
      await closed;
      host.send("too late");
      await pause();
      same(heard, [], "what the host heard");
    },
  },
  {
    sentence: "who asks for the close of a connection that is closed is told",
    async check({ pair }) {
      const { client } = await pair();
      client.close();
      await closeOf(client);
    },
  },
];
