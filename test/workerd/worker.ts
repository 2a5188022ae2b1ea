/** What runs in workerd: Durable Objects that keep sessions, and are asked about them. */
import { durableObjectStorage, type DurableObjectContext } from "turnloop/durable-object";
import { storageContract } from "turnloop/testing";
import { batchOf, textsOf } from "../adapters/batches.ts";
import { examine } from "../deaths/examine.ts";
import { live, type Moment } from "../deaths/life.ts";
import { tellTo } from "../deaths/tell.ts";
import { stay, type Luggage } from "../moves/stay.ts";

interface Cursor {
  toArray(): Record<string, unknown>[];
  /** As it is billed. */
  readonly rowsWritten: number;
}

interface Env {
  readonly SESSIONS: {
    idFromName(name: string): unknown;
    get(id: unknown): { fetch(request: Request): Promise<Response> };
  };
}

export class Sessions {
  readonly #ctx: DurableObjectContext;

  constructor(ctx: DurableObjectContext) {
    this.#ctx = ctx;
  }

  async fetch(request: Request): Promise<Response> {
    const url = new URL(request.url);
    try {
      return Response.json((await this.#answer(url.pathname.slice(1), url.searchParams, await request.json())) ?? null);
    } catch (thrown) {
      return new Response(thrown instanceof Error ? thrown.stack : String(thrown), { status: 500 });
    }
  }

  async #answer(verb: string, query: URLSearchParams, given: unknown): Promise<unknown> {
    if (verb === "contract") return this.#contract(query.get("sentence")!);
    if (verb === "bill") return this.#bill();
    if (verb === "fail") return this.#fail();
    const storage = durableObjectStorage(this.#ctx);
    if (verb === "stay") return stay(storage, query.get("place")!, given as Luggage);
    const tell = tellTo(query.get("outside")!);
    if (verb === "live") return live(storage, query.get("moment") as Moment, tell);
    if (verb === "examine") {
      const interrupted = query.get("interrupted") as "close" | "continue";
      return examine(storage, { interrupted, allow: query.has("allow"), tell });
    }
    throw new Error(`there is nothing to do for ${verb}`);
  }

  /** How many rows each of ten appends to a new session has written, as the platform counts them. */
  async #bill(): Promise<number[]> {
    let written = 0;
    const { storage: real } = this.#ctx;
    const counted: DurableObjectContext["storage"] = {
      transactionSync: (body) => real.transactionSync(body),
      sync: () => real.sync(),
      sql: {
        exec(query, ...bindings) {
          const cursor = real.sql.exec(query, ...bindings) as Cursor;
          const rows = cursor.toArray();
          written += cursor.rowsWritten;
          return { toArray: () => rows };
        },
      },
    };
    const storage = durableObjectStorage({ storage: counted });
    await storage.append(batchOf("the one that makes the tables", 0, ["text"]));
    const rows: number[] = [];
    for (let i = 0; i < 10; i += 1) {
      written = 0;
      await storage.append(batchOf("s", i, ["text"]));
      rows.push(written);
    }
    return rows;
  }

  /** What is stored after an append that failed at its last statement, and was made again with other events. */
  async #fail(): Promise<unknown> {
    const storage = durableObjectStorage(this.#ctx);
    const { sql } = this.#ctx.storage;
    await storage.append(batchOf("s", 0, ["first"]));
    sql.exec(`CREATE TRIGGER refuse BEFORE UPDATE ON turnloop_sessions BEGIN SELECT RAISE(ABORT, 'no'); END`).toArray();
    const failed = await storage.append(batchOf("s", 1, ["never stored"])).catch(({ code }: { code: string }) => code);
    sql.exec("DROP TRIGGER refuse").toArray();
    await storage.append(batchOf("s", 1, ["second"]));
    return { failed, texts: await textsOf(storage, "s") };
  }

  /** One test of the contract, on the database of this object. */
  async #contract(sentence: string): Promise<void> {
    const bodies = new Map<string, () => Promise<void>>();
    storageContract({ test: (name, body) => void bodies.set(name, body) }, async () => ({
      open: async () => durableObjectStorage(this.#ctx),
      destroy: async () => {},
    }));
    await bodies.get(sentence)!();
  }
}

/** Each request goes to the object that it names. */
export const worker = {
  async fetch(request: Request, { SESSIONS }: Env): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/abort") {
      const { default: unsafe } = await import("workerd:unsafe");
      await unsafe.abortAllDurableObjects();
      return Response.json(null);
    }
    return SESSIONS.get(SESSIONS.idFromName(searchParams.get("object")!)).fetch(request);
  },
};
