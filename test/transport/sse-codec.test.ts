/** Frames as server-sent events, cut anywhere, and as others write them. */
import { expect, test } from "vitest";
import { createDecoder, encodeFrame } from "../../adapters/transport/sse-codec.ts";

function decoded(pieces: readonly string[]): string[] {
  const told: string[] = [];
  const decode = createDecoder({
    frame: (frame) => void told.push(frame),
    open: (stream) => void told.push(`open ${stream}`),
    alive: () => void told.push("alive"),
  });
  for (const piece of pieces) decode(piece);
  return told;
}

const frames = [
  "{}",
  "",
  " a space",
  "line\nline",
  "cr\rlf\r\n",
  "\u2028 漢字 👩‍👩‍👧 \u0000",
  ":",
  "data: x",
  "event: open",
];

test("frames arrive as they were, wherever the text is cut", () => {
  const text = frames.map(encodeFrame).join("");
  for (let cut = 0; cut <= text.length; cut += 1)
    expect(decoded([text.slice(0, cut), text.slice(cut)])).toEqual(frames);
  expect(decoded(text.split(""))).toEqual(frames);
});

test.for(["\n", "\r", "\r\n"])("a stream whose lines end with %j is read, in one piece and in many", (end) => {
  const lines = [":", "event: open", "data: 1", "", "retry: 5", "id: 7", "data:two", "data: lines", "", "unknown", ""];
  const text = lines.map((line) => line + end).join("");
  expect(decoded([text])).toEqual(["alive", "open 1", "two\nlines"]);
  expect(decoded(text.split(""))).toEqual(["alive", "open 1", "two\nlines"]);
});

test("an event that is not ended is not told, and one of a name that nobody knows neither", () => {
  expect(decoded(["event: later\ndata: x\n\n", "data: unfinished\n"])).toEqual([]);
});
