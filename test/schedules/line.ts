/** Lines that delay, repeat and lose frames, and break, all at random. */
import type { Connection } from "turnloop/transport";
import type { Random } from "../deaths/random.ts";

type Dial = () => Connection | Promise<Connection>;

/**
 * A line that breaks loses what was under way. One that does not keeps its frames in their order, as every line must,
 * some of them twice.
 */
export function badLine(dial: Dial, random: Random): Dial {
  return async () => {
    const line = await dial();
    let left = 5 + random.below(60);
    let broken = false;

    function pass(deliver: () => void): void {
      if (broken) return;
      left -= 1;
      if (left === 0) {
        broken = true;
        line.close("the line broke");
        return;
      }
      deliver();
      if (random.below(8) === 0) deliver();
    }

    /** One after the other, each after a while. */
    function slowly(): (deliver: () => void) => void {
      let before = Promise.resolve();
      return (deliver) => {
        const turns = random.below(4);
        before = before.then(async () => {
          for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setTimeout(resolve));
          pass(deliver);
        });
      };
    }

    const [out, back] = [slowly(), slowly()];
    return {
      get buffered() {
        return line.buffered ?? 0;
      },
      send: (frame) => out(() => line.send(frame)),
      onMessage: (listener) => line.onMessage((frame) => back(() => listener(frame))),
      onClose: (listener) => line.onClose(listener),
      close: (reason) => line.close(reason),
    };
  };
}
