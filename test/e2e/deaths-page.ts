/** What runs in a page that will die, and in the one that comes after it. */
import { indexedDBStorage } from "turnloop/indexeddb";
import { examine, type Examined } from "../deaths/examine.ts";
import { live, type Moment } from "../deaths/life.ts";
import { tellTo } from "../deaths/tell.ts";

export interface DeathsApi {
  /** Lives until the page dies. */
  live(moment: Moment, outside: string): Promise<void>;
  /** The JSON of an `Examined`. */
  examine(interrupted: "close" | "continue", allow: boolean, outside: string): Promise<string>;
}

/** What the storage has told by itself: of these deaths, none gives it a reason. */
const complaints: string[] = [];
const storage = indexedDBStorage({
  name: "deaths",
  onDiagnostic: ({ code, message }) => complaints.push(`${code}: ${message}`),
});

const api: DeathsApi = {
  live: (moment, outside) => live(storage, moment, tellTo(outside)),
  async examine(interrupted, allow, outside) {
    const found = await examine(storage, { interrupted, allow, tell: tellTo(outside) });
    return JSON.stringify({ ...found, complaints: [...complaints, ...found.complaints] } satisfies Examined);
  },
};

Object.assign(globalThis, { page: api });
