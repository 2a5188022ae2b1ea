/** Sessions as lines of JSON: out of one storage, into another. Loaded with the first of them. */
import { messageOf, TurnloopError } from "../errors.ts";
import { checkHeader } from "../session/header.ts";
import { checkEvent } from "../session/shapes.ts";
import type { SessionEvent, SessionHeader } from "../session/types.ts";
import { makeArchive, type Archive } from "./archive.ts";

/** The header, then the events; each line ends with a line feed. */
export function* toLines({ header, events }: Archive): Generator<string> {
  yield `${JSON.stringify(header)}\n`;
  for (const event of events) yield `${JSON.stringify(event)}\n`;
}

/** Reads what `toLines` wrote, cut into pieces anywhere. Throws INVALID_IMPORT, UNKNOWN_VERSION, UNKNOWN_EVENT. */
export async function fromLines(lines: AsyncIterable<string> | Iterable<string>): Promise<Archive> {
  if (
    lines === null ||
    (typeof lines !== "object" && typeof lines !== "string") ||
    !(Symbol.asyncIterator in Object(lines) || Symbol.iterator in Object(lines))
  ) {
    throw new TurnloopError("INVALID_IMPORT", "an import takes the lines of `sessions.export`");
  }
  let header: SessionHeader | undefined;
  const events: SessionEvent[] = [];
  const take = (line: string): void => {
    if (line.trim() === "") return;
    if (!header) header = checkHeader(JSON.parse(line));
    else events.push(checkEvent(JSON.parse(line), events.length));
  };
  /** The pieces of a line that has not ended yet: put together once, so that small pieces cost no more than large ones. */
  let rest: string[] = [];
  let number = 0;
  const endLine = (): void => {
    number += 1;
    const line = rest.join("");
    rest = [];
    take(line);
  };
  try {
    for await (const piece of lines) {
      if (typeof piece !== "string") throw new TypeError("a piece of it is not text");
      const [end, ...begun] = piece.split("\n");
      rest.push(end!);
      for (const part of begun) {
        endLine();
        rest.push(part);
      }
    }
    endLine();
    if (!header) throw new TurnloopError("INVALID_IMPORT", "there is nothing in it");
    return makeArchive(header, events);
  } catch (cause) {
    if (TurnloopError.is(cause, "UNKNOWN_VERSION") || TurnloopError.is(cause, "UNKNOWN_EVENT")) throw cause;
    throw new TurnloopError("INVALID_IMPORT", `line ${number} cannot be imported: ${messageOf(cause)}`, { cause });
  }
}
