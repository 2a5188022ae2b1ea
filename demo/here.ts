/** Chats that live in this tab, and are kept by this browser. */
import { createHarness, type AgentHandle } from "turnloop";
import { indexedDBStorage } from "turnloop/indexeddb";
import { demoAgent } from "./agent.ts";
import { offlineModel } from "./offline-model.ts";
import type { Opening, Place } from "./place.ts";

export function here(): Place {
  /** `?pace=5` in the address: the milliseconds that the script takes for a piece of text. */
  const pace = Number(new URLSearchParams(location.search).get("pace") ?? Number.NaN);
  /** In memory where the browser gives the page no database: then it is not `durable`. */
  const storage = indexedDBStorage({ name: "turnloop-demo" });
  const harness = createHarness({
    ...demoAgent(),
    model: "scripted",
    models: { scripted: offlineModel(Number.isFinite(pace) ? pace : undefined) },
    storage,
  });
  const { agents, sessions } = harness;
  let forget = (): void => {};

  async function open({ id, model, takesOver, signal }: Opening): Promise<AgentHandle> {
    // One that was taken away is let go first: to open it again would be to join it.
    if (agents.get(id)?.session.durable === "lost") await disposalOf(id);
    return agents.open({
      id,
      model,
      signal,
      // After a reload the tab's former page may take a moment to let go; another tab will not.
      ...(takesOver ? { claim: "steal" } : { claim: "wait", claimTimeoutMs: 3000 }),
    });
  }

  async function disposalOf(id: string): Promise<void> {
    await new Promise<void>((resolve) => {
      const off = harness.hooks.on("agent/disposed", ({ agent }) => {
        if (agent.id !== id) return;
        off();
        resolve();
      });
    });
  }

  return {
    model: undefined,
    setModel(model) {
      forget();
      forget = harness.models.register("endpoint", model);
    },
    get durable() {
      return storage.durable;
    },
    newId: () => `chat-${crypto.randomUUID()}`,
    open,
    list: async () => (await sessions.list({ limit: 100 })).sessions,
    rename: (id, title) => sessions.rename(id, title),
    delete: (id) => sessions.delete(id),
    async fork(from, cut, id) {
      const { agent, dispose } = await agents.fork({ from, ...cut, id });
      await agent.flush();
      await dispose();
    },
    async export(id) {
      const lines: string[] = [];
      for await (const line of sessions.export(id)) lines.push(line);
      return lines;
    },
    import: async (lines, id) => (await sessions.import(lines, id === undefined ? {} : { id })).id,
  };
}
