/** Where the chats of this page live: in the browser, or at the edge, as the page was built. */
import type { AgentHandle, Model, SessionSummary } from "turnloop";
import { edge } from "./edge/place.ts";
import { here } from "./here.ts";

/** The routes of the page's models. */
export type Route = "scripted" | "endpoint";

export interface Opening {
  readonly id: string;
  readonly model: Route;
  /** Takes it from the tab that has it. */
  readonly takesOver: boolean;
  readonly signal: AbortSignal;
}

/** Where a copy of a chat ends: with the event of this seq, or before the turn of this message. */
export interface Cut {
  readonly at?: number;
  readonly before?: string;
}

export interface Place {
  /** The model that answers there, by its name; undefined where the page has its own. */
  readonly model: string | undefined;
  /** Makes it what the route `endpoint` leads to, from the next request on. Absent where no key of a page has a place. */
  setModel?(model: Model): void;
  /** Whether anything outlives the page. */
  readonly durable: boolean;
  newId(): string;
  open(opening: Opening): Promise<AgentHandle>;
  /** The newest ones. */
  list(): Promise<readonly SessionSummary[]>;
  rename(id: string, title: string): Promise<void>;
  delete(id: string): Promise<void>;
  /** A copy under this id, which lasts. */
  fork(from: string, cut: Cut, id: string): Promise<void>;
  /** Lines that `import` takes anywhere. */
  export(id: string): Promise<readonly string[]>;
  /** Rejects SESSION_EXISTS. Without an id it has that of the lines. Answers with its id. */
  import(lines: readonly string[], id?: string): Promise<string>;
}

export const place: Place = import.meta.env.VITE_PLACE === "edge" ? edge() : here();
