/** A response that is broken off when one message in it grows too large, before it is in memory. */

const NEWLINE = 10;

/** A stream of events may be as long as it likes, as long as none of them is too large. `exceeded` is told first. */
export function bounded(response: Response, maxBytes: number, exceeded: () => void): Response {
  const { body, status, statusText, headers } = response;
  if (!body) return response;
  const isStream = headers.get("content-type")?.includes("text/event-stream") ?? false;
  const reader = body.getReader();
  let size = 0;
  const limited = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      size = isStream ? sinceLastLine(size, value) : size + value.length;
      if (size > maxBytes) {
        exceeded();
        void reader.cancel().catch(() => {});
        return controller.error(new Error(`more than ${maxBytes} bytes in one message`));
      }
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(limited, { status, statusText, headers });
}

/** A message is a line of its own. */
function sinceLastLine(size: number, value: Uint8Array): number {
  const last = value.lastIndexOf(NEWLINE);
  return last < 0 ? size + value.length : value.length - last - 1;
}
