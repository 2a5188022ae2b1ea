/** The platform's own `ctx` fits what `durableObjectStorage` takes: checked by the compiler. */
import type { DurableObjectState } from "@cloudflare/workers-types/index.ts";
import type { DurableObjectContext } from "turnloop/durable-object";

export const accepts = (ctx: DurableObjectState): DurableObjectContext => ctx;
