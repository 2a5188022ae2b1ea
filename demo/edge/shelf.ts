/** The list of one visitor's chats: told by the chats themselves, whenever what a list shows of them has changed. */
import { DurableObject } from "cloudflare:workers";
import type { SessionSummary } from "turnloop";

interface Context {
  readonly storage: {
    readonly kv: {
      put(key: string, value: unknown): void;
      delete(key: string): boolean;
      list<T>(): Iterable<[string, T]>;
    };
  };
}

export class Shelf extends DurableObject {
  readonly #kv: Context["storage"]["kv"];

  constructor(ctx: Context, env: unknown) {
    super(ctx, env);
    this.#kv = ctx.storage.kv;
  }

  put(summary: SessionSummary): void {
    this.#kv.put(summary.id, summary);
  }

  remove(id: string): void {
    this.#kv.delete(id);
  }

  /** The newest first. */
  list(): SessionSummary[] {
    const all = Array.from(this.#kv.list<SessionSummary>(), ([, summary]) => summary);
    return all.toSorted((a, b) => b.updatedAt - a.updatedAt).slice(0, 100);
  }
}
