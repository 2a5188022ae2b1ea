/** A turn as the loop writes it: an answer of many chunks, some of them odd, and the message that they amount to. */
import type { ContentBlock, ModelChunk, SessionEvent } from "../core.ts";
import { frozen } from "./storage-contract-kit.ts";

/** The emoji is cut in two, as some providers do; each half is a lone surrogate. */
const PIECES = [
  "The ",
  "loop",
  " of",
  " an",
  "",
  " agent",
  '"\\',
  "\n\t",
  "\u0000",
  "\ud83d",
  "\ude00",
  "日本",
  " \ud800 ",
  "~3;",
];

/** Reasoning, text and a tool call, each in pieces that take turns now and then. */
function chunks(): ModelChunk[] {
  const row: ModelChunk[] = [{ type: "block-start", index: 0, block: { type: "reasoning" } }];
  for (let i = 0; i < 40; i += 1) row.push({ type: "delta", index: 0, text: PIECES[i % PIECES.length]! });
  row.push({ type: "block-end", index: 0, meta: { signature: "x" } });
  row.push({ type: "block-start", index: 2, block: { type: "tool-call", id: "p1", name: "work" } });
  for (let i = 0; i < 60; i += 1) {
    row.push({ type: "delta", index: 1, text: PIECES[(i * 5) % PIECES.length]! });
    if (i % 10 === 9) row.push({ type: "delta", index: 2, text: `[${i}]` });
  }
  row.push({ type: "delta", index: 2, text: "", id: "p2" });
  row.push({ type: "usage", usage: { output: 100 } }, { type: "finish", reason: { kind: "tool-calls" } });
  return row;
}

export function streamedTurn(): readonly SessionEvent[] {
  const events: SessionEvent[] = [];
  let time = 1_764_000_000_000;
  const add = (event: object): void => {
    const seq = events.length;
    time += seq % 7 === 0 ? 250 : seq % 3;
    events.push({ seq, time, ...event } as SessionEvent);
  };
  const place = { turn: 1, step: 1 };
  add({ type: "turn/start", data: { turn: 1, trigger: { kind: "message", source: { kind: "user" } } } });
  add({ type: "step/start", data: place });
  const first = events.length;
  const row = chunks();
  for (const chunk of row) add({ type: "assistant/chunk", data: { ...place, chunk } });
  const said = [0, 1, 2].map((index) =>
    row
      .map((chunk) => (chunk.type === "delta" && chunk.index === index ? chunk.text : ""))
      .join("")
      .toWellFormed(),
  ) as [string, string, string];
  const content: ContentBlock[] = [
    { type: "reasoning", text: said[0], meta: { signature: "x" } },
    { type: "tool-call", callId: "call_1_1_1_2", name: "work", arguments: said[2], meta: { providerCallId: "p2" } },
    { type: "text", text: said[1] },
    { type: "text", text: "added by a hook" },
  ];
  const cites = [[first, events.length - 1]];
  add({ type: "assistant/message", data: { ...place, model: "p/m", content }, surface: "append", cites });
  add({ type: "step/end", data: place });
  add({ type: "turn/end", data: { turn: 1, reason: { kind: "completed" } } });
  return frozen(events);
}
