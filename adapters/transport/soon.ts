/** After what is running now. A timer would do it too, but in a hidden tab it may take a second. */

let port: MessagePort | undefined;
const tasks: (() => void)[] = [];

export function soon(task: () => void): void {
  const { setImmediate } = globalThis as { setImmediate?: (task: () => void) => unknown };
  if (setImmediate) {
    setImmediate(task);
    return;
  }
  if (typeof MessageChannel === "undefined") {
    setTimeout(task, 0);
    return;
  }
  tasks.push(task);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port has no origin
  (port ??= opened()).postMessage(null);
}

function opened(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  port1.addEventListener("message", () => tasks.shift()?.());
  port1.start();
  return port2;
}
