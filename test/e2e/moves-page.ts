/** What runs in the page where a session begins to travel, and where it comes back to. */
import { indexedDBStorage } from "turnloop/indexeddb";
import { stay, type Luggage, type Stay } from "../moves/stay.ts";

export interface MovesApi {
  stay(place: string, luggage?: Luggage): Promise<Stay>;
}

const api: MovesApi = { stay: (place, luggage) => stay(indexedDBStorage(), place, luggage) };

Object.assign(globalThis, { page: api });
