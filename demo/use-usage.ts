/** What a chat has used so far, kept up with its log. */
import { usageOf, type Agent, type SessionEventType, type SessionUsage, type Store } from "turnloop";
import { useMemo, useSyncExternalStore } from "react";

const PAID: ReadonlySet<SessionEventType> = new Set(["assistant/message", "request/failed", "model/aux"]);
const NOTHING: Store<SessionUsage | undefined> = { subscribe: () => () => {}, getSnapshot: () => undefined };

export function useUsage(agent: Agent | undefined): SessionUsage | undefined {
  const store = useMemo(() => (agent ? usageStore(agent) : NOTHING), [agent]);
  return useSyncExternalStore(store.subscribe, store.getSnapshot);
}

/** The log is added up again only after an event that tells of usage. */
function usageStore(agent: Agent): Store<SessionUsage> {
  let counted = agent.session;
  let usage: SessionUsage | undefined;
  return {
    subscribe(listener) {
      const follow = () =>
        agent.session.subscribe(({ type }) => {
          if (!PAID.has(type)) return;
          usage = undefined;
          listener();
        });
      let followed = agent.session;
      let unfollow = follow();
      // The log of a remote agent may be replaced.
      const unwatch = agent.subscribe(() => {
        if (followed === agent.session) return;
        unfollow();
        followed = agent.session;
        unfollow = follow();
        listener();
      });
      return () => {
        unwatch();
        unfollow();
      };
    },
    getSnapshot() {
      if (counted !== agent.session) [counted, usage] = [agent.session, undefined];
      return (usage ??= usageOf(counted));
    },
  };
}
