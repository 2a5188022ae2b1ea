/** The face of `turnloop/transport`: agents over a wire. */
export { serveAgents, type AgentServer } from "./host.ts";
export { connectAgent, type ConnectAgentOptions } from "./connect.ts";
export type { OutboxStore } from "./outbox.ts";
export { messagePort } from "./message-port.ts";
export { webSocket } from "./web-socket.ts";
export { sse, type SseOptions } from "./sse.ts";
export { agentRoute, type AgentRoute, type AgentRouteOptions } from "./route.ts";
export type { Authorize, Connection, Grant, Limits, Right } from "./types.ts";
