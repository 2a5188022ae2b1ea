/** The agents of the schedules in Durable Objects. */
import { agentObject, routeAgentRequest, type AgentNamespace } from "turnloop/durable-object";
import type { Authorize } from "turnloop/transport";
import { agentsOf } from "./agents.ts";

interface Env {
  readonly AGENTS: AgentNamespace;
  /** Where the tools tell what they do. */
  readonly OUTSIDE: string;
}

const authorize: Authorize = () => ({ identity: "ann", rights: ["drive", "answer"] });

export class Agents extends agentObject<Env>({
  authorize,
  limits: { commandsPerSecond: 1000 },
  harness: (_, { OUTSIDE }) =>
    agentsOf(async (effect) => {
      await fetch(OUTSIDE, { method: "POST", body: JSON.stringify(effect) });
    }),
}) {}

export const worker = {
  fetch: async (request: Request, env: Env): Promise<Response> =>
    (await routeAgentRequest(request, env, { namespace: ({ AGENTS }) => AGENTS, authorize })) ??
    new Response(null, { status: 404 }),
};
