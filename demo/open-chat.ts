/** Opens a chat in this tab. */
import type { AgentHandle } from "turnloop";
import { harness, type Route } from "./harness.ts";

export interface Opening {
  readonly id: string;
  readonly model: Route;
  /** Takes it from the tab that has it. */
  readonly takesOver: boolean;
  readonly signal: AbortSignal;
}

export async function openChat({ id, model, takesOver, signal }: Opening): Promise<AgentHandle> {
  // One that was taken away is let go first: to open it again would be to join it.
  if (harness.agents.get(id)?.session.durable === "lost") await disposalOf(id);
  return harness.agents.open({
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
