/** The summaries of a list, as far as what is stored can be read as one. */
import type { SessionSummary } from "../../src/core.ts";

/** What a row knows of its session besides the summary. */
export interface RowFacts {
  readonly id: string;
  readonly updatedAt: number;
  /** How many events are stored. */
  readonly seq: number;
}

const STATUSES: ReadonlySet<unknown> = new Set(["idle", "open", "waiting"]);

/** One that was damaged is made up from its row: a list that shows the session lets people open or delete it. */
export function summaryFrom(raw: unknown, { id, updatedAt, seq }: RowFacts): SessionSummary {
  const said = (typeof raw === "object" && raw !== null ? raw : {}) as Partial<Record<keyof SessionSummary, unknown>>;
  const { createdAt, title, parent, status } = said;
  return {
    id,
    createdAt: typeof createdAt === "number" && Number.isSafeInteger(createdAt) ? createdAt : updatedAt,
    updatedAt,
    seq,
    ...(typeof title === "string" && { title }),
    ...(typeof parent === "string" && { parent }),
    status: STATUSES.has(status) ? (status as SessionSummary["status"]) : "idle",
  };
}
