/** Frames as server-sent events: the same text for both directions, a stream one way, the body of a request the other. */

/** Told by the first event of a stream: how a request says that it belongs to it. */
export const STREAM_HEADER = "turnloop-stream";

/** A comment, which says nothing but that the stream is alive. */
export const ALIVE = ":\n\n";

export function encodeOpen(stream: string): string {
  return `event: open\ndata: ${stream}\n\n`;
}

/** JSON has no line breaks of its own; a text that has is quoted. */
export function encodeFrame(frame: string): string {
  return /[\r\n]/.test(frame) ? `event: quoted\ndata: ${JSON.stringify(frame)}\n\n` : `data: ${frame}\n\n`;
}

export interface EventReader {
  frame(frame: string): void;
  open?(stream: string): void;
  alive?(): void;
}

/** Takes the text in pieces, cut anywhere. What it does not know it leaves out. Throws for a quotation that is none. */
export function createDecoder(reader: EventReader): (text: string) => void {
  /** Of a line that goes on in the next piece: joined once, as a frame may be large. */
  let pieces: string[] = [];
  let afterReturn = false;
  let event = "";
  let data: string[] = [];

  function line(text: string): void {
    if (text === "") return dispatch();
    if (text.startsWith(":")) return reader.alive?.();
    const colon = text.indexOf(":");
    const field = colon === -1 ? text : text.slice(0, colon);
    const value = colon === -1 ? "" : text.slice(text[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "event") event = value;
    else if (field === "data") data.push(value);
  }

  function dispatch(): void {
    const [name, text] = [event, data.length > 0 ? data.join("\n") : undefined];
    event = "";
    data = [];
    if (text === undefined) return;
    if (name === "") reader.frame(text);
    else if (name === "quoted") reader.frame(String(JSON.parse(text)));
    else if (name === "open") reader.open?.(text);
  }

  return (text) => {
    if (text === "") return;
    let start = afterReturn && text.startsWith("\n") ? 1 : 0;
    afterReturn = text.endsWith("\r");
    const breaks = /\r\n|\r|\n/g;
    breaks.lastIndex = start;
    for (let found = breaks.exec(text); found; found = breaks.exec(text)) {
      pieces.push(text.slice(start, found.index));
      start = breaks.lastIndex;
      const whole = pieces.join("");
      pieces = [];
      line(whole);
    }
    if (start < text.length) pieces.push(text.slice(start));
  };
}
