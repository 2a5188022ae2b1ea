/** Connects to an agent that runs elsewhere. */
import { messageOf, systemClock, TurnloopError } from "../../src/core.ts";
import type { AgentHandle, Clock, Diagnostic } from "../../src/core.ts";
import { createLink, type Link } from "./link.ts";
import { createOutbox, pageStore, type OutboxStore } from "./outbox.ts";
import { PROTOCOL, type ClientFrame, type Command, type HostFrame } from "./protocol.ts";
import { createRemoteAgent, type RemoteAgent } from "./remote-agent.ts";
import { createMirror, type Mirror } from "./remote-session.ts";
import type { Connection } from "./types.ts";
import { fromWire } from "./wire-error.ts";

export interface ConnectAgentOptions {
  /** Called for the first connection, and again whenever one is gone. UNAUTHORIZED from it is final. */
  connect(): Connection | Promise<Connection>;
  session: string;
  /** `tail`: begins with the last turns; `session.loadEarlier` brings more. Default: `all`. */
  history?: "all" | "tail";
  /** Of the connecting; aborting it later does nothing. */
  signal?: AbortSignal;
  /** Where commands that the host has not acknowledged are kept over a reload. Default: the page's sessionStorage. */
  outbox?: OutboxStore;
  clock?: Clock;
  /** Told what no caller can be told: LISTENER_FAILED. Default: `console.warn`. */
  onDiagnostic?(diagnostic: Diagnostic): void;
}

/**
 * Resolves when the host has answered and all that it has stored is here. `agent` is the ordinary interface; its
 * verbs return at once and are done at the host, each once, however often the connection breaks. A command that
 * the host refuses leaves the queue, is `error` in the snapshot, and rejects `flush` and `run`. When the host will
 * not have the client any more the handle is disposed, and `error` says why. Disposing it does not stop the agent.
 *
 * Keeps trying while the host cannot be reached. Rejects with the signal's reason; UNAUTHORIZED,
 * SESSION_NOT_FOUND, VERSION_MISMATCH, and whatever else the host refuses for good.
 */
export function connectAgent(options: ConnectAgentOptions): Promise<AgentHandle> {
  const { connect, session: id, history = "all", signal, clock = systemClock, outbox: store = pageStore() } = options;
  const report = options.onDiagnostic ?? warn;
  const client = crypto.randomUUID();
  const opened = Promise.withResolvers<AgentHandle>();
  const outbox = createOutbox(id, store, () => remote?.changed());
  let mirror: Mirror | undefined;
  let remote: RemoteAgent | undefined;
  let opening = true;
  /** Of this connection. */
  let welcomed = false;
  let maxFrameBytes = Infinity;
  let seenEvery = Infinity;
  let seen = 0;
  let earlier: PromiseWithResolvers<void> | undefined;

  function hello(): ClientFrame {
    welcomed = false;
    const last = mirror?.last;
    return {
      type: "hello",
      version: PROTOCOL,
      session: id,
      client,
      history,
      ...(last && { next: last.seq + 1, last }),
    };
  }

  /** In one frame, or in several if it would be too large. */
  function sendCommands(commands: readonly Command[]): void {
    let batch: Command[] = [];
    let size = 0;
    const flush = (): void => {
      if (batch.length > 0) link.send({ type: "commands", session: id, commands: batch });
      batch = [];
      size = 0;
    };
    const room = maxFrameBytes - byteLength(JSON.stringify({ type: "commands", session: id, commands: [] }));
    for (const command of commands) {
      const own = byteLength(JSON.stringify(command)) + 1;
      if (own > room) {
        const message = `the host takes at most ${maxFrameBytes} bytes at once; this has ${own}`;
        refuse(command.id, new TurnloopError("FRAME_TOO_LARGE", message));
        continue;
      }
      if (size + own > room) flush();
      batch.push(command);
      size += own;
    }
    flush();
  }

  function refuse(command: string, error: TurnloopError): void {
    if (outbox.refuse(command, error)) remote?.refused(error);
  }

  function welcome(frame: Extract<HostFrame, { type: "welcome" }>): void {
    if (welcomed) return welcomeAgain(frame);
    welcomed = true;
    ({ maxFrameBytes, seenEvery } = frame);
    seen = 0;
    // The log goes on where it is, or it is another one.
    if (frame.base || !mirror?.goesOn(frame.header, frame.next)) {
      mirror = createMirror({
        header: frame.header,
        id,
        base: frame.base,
        durable: () => remote?.agent.getSnapshot().durable ?? "stored",
        loadEarlier,
        failed(cause) {
          const message = `a listener of the session failed: ${messageOf(cause)}`;
          report({ code: "LISTENER_FAILED", message, cause, sessionId: id });
        },
      });
      if (remote) remote.mirror(mirror);
      else remote = createRemoteAgent({ mirror, outbox, newId: () => crypto.randomUUID(), report });
    }
    mirror.openedAt(frame.openedAt);
    remote!.connection("open", Object.freeze([...frame.rights]), Object.freeze(frame.options));
    outbox.resend(sendCommands);
  }

  /** The host was asleep behind its open connection: it has forgotten what it had not stored. */
  function welcomeAgain({ openedAt }: Extract<HostFrame, { type: "welcome" }>): void {
    if (!mirror!.openedAt(openedAt)) return;
    remote!.changed();
    outbox.resend(sendCommands);
  }

  function take(frame: HostFrame): void {
    if (frame.type === "welcome") return welcome(frame);
    if (!welcomed || !remote || !mirror || frame.type === "closed" || frame.session !== id) return;
    switch (frame.type) {
      case "events": {
        // Twice the same would be no news.
        const skip = Math.max(0, mirror.session.seq - frame.from);
        if (skip < frame.events.length || frame.from > mirror.session.seq)
          mirror.receive(frame.from + skip, frame.events.slice(skip), remote.took);
        return;
      }
      case "state":
        remote.host(frame.state);
        // The first one stands behind all that was stored.
        if (opening) open();
        return;
      case "done":
        return outbox.done(frame.id, frame.value);
      case "refused":
        return refuse(frame.id, fromWire(frame.error));
      case "earlier":
        mirror.prepend(frame.base, frame.events);
        remote.mirror(mirror);
        earlier?.resolve();
        earlier = undefined;
    }
  }

  function loadEarlier(): Promise<void> {
    if (!earlier) {
      earlier = Promise.withResolvers();
      link.send({ type: "earlier", session: id, before: mirror!.session.start });
    }
    return earlier.promise;
  }

  function end(error: TurnloopError, refused: boolean): void {
    if (refused) outbox.close(error, true);
    else outbox.close(error, false);
    earlier?.reject(error);
    remote?.end(refused ? error : undefined);
    link.close();
  }

  function open(): void {
    opening = false;
    signal?.removeEventListener("abort", abort);
    opened.resolve({
      agent: remote!.agent,
      async dispose() {
        end(new TurnloopError("AGENT_DISPOSED", `the handle of ${id} was disposed`), false);
      },
    });
  }

  const abort = (): void => {
    const { reason } = signal!;
    opened.reject(reason instanceof Error ? reason : new TurnloopError("ABORTED", "the connecting was aborted"));
    link.close();
  };

  const link: Link = createLink({
    connect,
    clock,
    hello,
    frame: take,
    received(length) {
      seen += length;
      if (!welcomed || seen < seenEvery) return;
      link.send({ type: "seen", session: id, amount: seen });
      seen = 0;
    },
    lost() {
      outbox.hold();
      // Asked again, by whoever asks, on the next connection.
      earlier?.reject(new TurnloopError("CONNECTION_LOST", "the connection was lost; ask again"));
      earlier = undefined;
      remote?.connection("connecting");
    },
    refused(error) {
      opened.reject(error);
      end(error, true);
    },
  });
  if (signal?.aborted) abort();
  else signal?.addEventListener("abort", abort, { once: true });
  return opened.promise;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

function warn({ code, message, cause }: Diagnostic): void {
  console.warn(`turnloop: ${code}: ${message}`, ...(cause === undefined ? [] : [cause]));
}
