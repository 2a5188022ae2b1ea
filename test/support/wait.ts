/** Waiting for what is told, never for a time. */
import type { Agent, SessionEvent, SessionEventType, SessionView } from "turnloop";

/** The first event of the type, in the log already or still to come. */
export function eventOf<T extends SessionEventType>(
  session: SessionView,
  type: T,
  matches: (event: SessionEvent<T>) => boolean = () => true,
): Promise<SessionEvent<T>> {
  return new Promise((resolve) => {
    const off = session.subscribe(
      (event) => {
        if (event.type !== type || !matches(event as SessionEvent<T>)) return;
        queueMicrotask(() => off());
        resolve(event as SessionEvent<T>);
      },
      { from: 0 },
    );
  });
}

/** When the snapshot first fits. */
export function snapshotWhere(
  agent: Agent,
  fits: (snapshot: ReturnType<Agent["getSnapshot"]>) => boolean,
): Promise<void> {
  return new Promise((resolve) => {
    const look = (): boolean => {
      if (!fits(agent.getSnapshot())) return false;
      off();
      resolve();
      return true;
    };
    let off = (): void => {};
    if (!look()) off = agent.subscribe(look);
  });
}

/** A promise that is settled from outside. */
export function deferred<T = void>(): { promise: Promise<T>; resolve(value: T): void; reject(error: unknown): void } {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  return { promise, resolve, reject };
}

/** The types of the log without its chunks. */
export function typesOf(session: SessionView): SessionEventType[] {
  return session.events.map((event) => event.type).filter((type) => type !== "assistant/chunk");
}

/** How a turn ended: the last one, or the one of the number. */
export function endOf(session: SessionView, turn?: number): SessionEvent<"turn/end">["data"]["reason"] | undefined {
  const ends = session.events.filter((event) => event.type === "turn/end");
  return (turn === undefined ? ends.at(-1) : ends.find((event) => event.data.turn === turn))?.data.reason;
}

/** The text of blocks. */
export function textOf(content: readonly { readonly type: string; readonly text?: string }[]): string {
  return content.map((block) => block.text ?? "").join("");
}
