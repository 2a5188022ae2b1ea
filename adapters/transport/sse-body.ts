/** The frames in the body of a request, of which no more is held than it may have. */
import { TurnloopError } from "../../src/core.ts";
import { createDecoder } from "./sse-codec.ts";

/** A client sends several frames at once as long as they have so many characters, each up to three bytes long. */
export const BATCH = 64 * 1024;

/** Rejects FRAME_TOO_LARGE, BAD_FRAME; a single frame is checked by whoever takes it. */
export async function readFrames(request: Request, maxFrameBytes: number): Promise<readonly string[]> {
  const room = 2 * maxFrameBytes + 4 * BATCH;
  const frames: string[] = [];
  const decode = createDecoder({ frame: (frame) => void frames.push(frame) });
  const decoder = new TextDecoder();
  const reader = request.body?.getReader();
  if (!reader) return frames;
  let size = Number(request.headers.get("content-length") ?? 0) > room ? Infinity : 0;
  for (;;) {
    if (size > room) {
      reader.cancel().catch(() => {});
      throw new TurnloopError("FRAME_TOO_LARGE", `a frame may have ${maxFrameBytes} bytes; send less at once`);
    }
    const { done, value } = await reader.read();
    if (done) return frames;
    size += value.length;
    try {
      decode(decoder.decode(value, { stream: true }));
    } catch (cause) {
      throw new TurnloopError("BAD_FRAME", "a quoted frame must be a JSON string", { cause });
    }
  }
}
