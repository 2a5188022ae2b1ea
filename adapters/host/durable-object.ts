/** `turnloop/durable-object`: agents in Cloudflare's Durable Objects. */
export { durableObjectStorage, type DurableObjectContext } from "../storage/durable-object.ts";
export { agentObject, type AgentObject } from "./durable-object-class.ts";
export { hostAgent } from "./durable-object-host.ts";
export type { AgentObjectContext, HibernatableSocket } from "./durable-object-platform.ts";
export { routeAgentRequest, type AgentNamespace, type RouteOptions } from "./durable-object-route.ts";
export type {
  AgentObjectHandlers,
  AgentObjectMethods,
  AgentObjectOptions,
  AgentObjectSnapshot,
} from "./durable-object-types.ts";
