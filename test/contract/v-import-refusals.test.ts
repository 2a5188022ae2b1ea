/** V: what an import refuses (D26): text from anywhere, none of which is trusted. */
import { createHarness, memoryStorage, TurnloopError, type SessionEvent } from "turnloop";
import { describe, expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import { headerOf, logOf, plainTurn } from "../support/made-log.ts";

const code = (is: string): unknown => expect.objectContaining({ code: is });
const two = logOf(plainTurn(1), plainTurn(2));

/** The lines of an archive. */
function linesOf(events: readonly (SessionEvent | object)[], header: object = headerOf("s")): string {
  return [header, ...events].map((one) => `${JSON.stringify(one)}\n`).join("");
}

describe("import refuses", () => {
  const bad: readonly (readonly [string, Iterable<string>, string])[] = [
    ["nothing", [], "INVALID_IMPORT"],
    ["white space", ["\n \n"], "INVALID_IMPORT"],
    ["what is no JSON", ["{"], "INVALID_IMPORT"],
    ["a line that is no JSON in the middle", [linesOf(two.slice(0, 2)), "\0\0\n", linesOf([])], "INVALID_IMPORT"],
    ["two lines in one", [linesOf(two).replace("\n", "")], "INVALID_IMPORT"],
    ["a last line that is cut off", [linesOf(two).slice(0, -9)], "INVALID_IMPORT"],
    ["no header", [linesOf(two).slice(linesOf([]).length)], "INVALID_IMPORT"],
    ["a header that is none", [linesOf(two, { version: 1, id: 3 })], "INVALID_IMPORT"],
    ["a header that is no object", ["null\n"], "INVALID_IMPORT"],
    ["a seed that is longer than the log", [linesOf(two, headerOf("s", { seedLength: 13 }))], "INVALID_IMPORT"],
    ["another format", [linesOf(two, headerOf("s", { version: 2 }))], "UNKNOWN_VERSION"],
    ["a gap", [linesOf([two[0]!, two[2]!])], "INVALID_IMPORT"],
    ["an event that is none", [linesOf([3 as never])], "INVALID_IMPORT"],
    [
      "a message of an unknown type",
      [linesOf([{ ...two[0]!, type: "later/message", surface: "append" }])],
      "UNKNOWN_EVENT",
    ],
    ["pieces that are no text", [new Uint8Array(3) as never], "INVALID_IMPORT"],
  ];
  for (const [what, lines, expected] of bad) {
    local(`D26 ${what}: ${expected}, and nothing is stored`, async () => {
      const harness = harnessWith({ storage: memoryStorage() });
      await expect(harness.sessions.import(lines)).rejects.toEqual(code(expected));
      expect(await harness.sessions.list()).toEqual({ sessions: [] });
    });
  }

  local("D26 what is no iterable of text", async () => {
    await expect(createHarness().sessions.import(undefined as never)).rejects.toEqual(code("INVALID_IMPORT"));
    await expect(createHarness().sessions.import(3 as never)).rejects.toEqual(code("INVALID_IMPORT"));
  });

  local("D26 an id that is none", async () => {
    await expect(createHarness().sessions.import(linesOf(two), { id: "" })).rejects.toThrow(TurnloopError);
    await expect(createHarness().sessions.import(linesOf(two), { id: 3 as never })).rejects.toThrow(TurnloopError);
  });

  local("D26 what breaks off while it is read, and it stores nothing", async () => {
    const harness = createHarness();
    const broken = (async function* () {
      yield linesOf(two);
      throw new Error("the line is dead");
    })();
    await expect(harness.sessions.import(broken)).rejects.toThrow("the line is dead");
    expect(await harness.sessions.list()).toEqual({ sessions: [] });
  });
});
