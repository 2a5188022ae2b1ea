/** The platform's own types fit what `turnloop/durable-object` takes, and the other way round: checked by the compiler. */
import type { DurableObjectNamespace, DurableObjectState } from "@cloudflare/workers-types/index.ts";
import type { AgentNamespace, AgentObject, AgentObjectContext } from "turnloop/durable-object";

export const accepts = (ctx: DurableObjectState): AgentObjectContext => ctx;
export const routes = (objects: DurableObjectNamespace<AgentObject>): AgentNamespace => objects;
