/** Follows one turn of an agent's log, for a stream. */
import { TurnloopError, type Agent, type SessionView, type Unregister } from "../../src/core.ts";
import type { Sink } from "./ai-sdk-ui-stream.ts";

/** From the event `from` on, in the turn that is open there, to its end. */
export function followTurn(agent: Agent, from: number, sink: Sink): Unregister {
  return following(agent, sink, from, (event) => {
    sink.event(event);
    if (event.type === "turn/end") sink.end();
  });
}

/** The turn that takes the message, which was accepted at `from` or later. */
export function followMessage(agent: Agent, id: string, from: number, sink: Sink): Unregister {
  let isOurs = false;
  let taken = false;
  return following(agent, sink, from, (event) => {
    if (event.type === "turn/start") isOurs = event.data.messages?.includes(id) ?? false;
    if (event.type === "user/message" || event.type === "prompt/blocked") taken ||= event.data.id === id;
    const dropped =
      event.type === "inbox/dropped" ? event.data.ids : event.type === "agent/cancelled" ? event.data.dropped : [];
    if (dropped.includes(id)) {
      taken = true;
      // The end of a turn that has it tells.
      if (!isOurs) return sink.end();
    }
    if (!isOurs) return;
    sink.event(event);
    // One that was given back is followed into the next turn.
    if (event.type !== "turn/end") return;
    isOurs = false;
    if (taken) sink.end();
  });
}

function following(
  agent: Agent,
  sink: Sink,
  from: number,
  listener: Parameters<SessionView["subscribe"]>[0],
): Unregister {
  const { session } = agent;
  // It may still tell of an older command.
  const { error: known } = agent.getSnapshot();
  const offs: Unregister[] = [session.subscribe(listener, { from })];
  const look = (): void => {
    const { durable, error } = agent.getSnapshot();
    if (error && (error !== known || durable === "lost")) sink.fail(error);
    else if (agent.session !== session)
      sink.fail(
        new TurnloopError("SESSION_CONFLICT", "another writer's log took this one's place: open the chat anew"),
      );
    else if (agent.status === "disposed")
      sink.fail(new TurnloopError("AGENT_DISPOSED", "the agent was disposed; the log keeps the turn"));
  };
  offs.push(agent.subscribe(look));
  look();
  return () => {
    for (const off of offs) off();
  };
}
