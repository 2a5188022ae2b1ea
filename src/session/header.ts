/** The header of a session, checked. */
import { TurnloopError } from "../errors.ts";
import { defined, isCount, isObject, isRecord, jsonCopy } from "../json.ts";
import type { SessionHeader, SessionMeta } from "./types.ts";

/** The format that this package reads and writes. */
export const LOG_VERSION = 1;

export interface HeaderInput {
  readonly id: string;
  readonly createdAt: number;
  readonly meta?: SessionMeta | undefined;
  readonly parent?: { readonly id: string; readonly seq: number } | undefined;
  readonly seedLength?: number | undefined;
}

/** A frozen header. Throws INVALID_HEADER, INVALID_CONTENT. */
export function makeHeader({ id, createdAt, meta, parent, seedLength }: HeaderInput): SessionHeader {
  const version = LOG_VERSION;
  return checkHeader(
    defined({ version, id, createdAt: Math.trunc(createdAt), meta: plain(meta ?? {}), parent, seedLength }),
    id,
  );
}

/** The same for one that comes from outside. `id` is the one that was asked for. */
export function checkHeader(raw: unknown, id?: string): SessionHeader {
  const bad = (what: string): never => {
    throw new TurnloopError("INVALID_HEADER", `the header of the session ${what}`);
  };
  const header = jsonCopy(raw) as SessionHeader;
  if (!isObject(header)) bad("is not an object");
  const { version, createdAt, meta, parent, seedLength } = header;
  if (!isCount(version)) bad("needs its `version`");
  if (version !== LOG_VERSION) {
    throw new TurnloopError(
      "UNKNOWN_VERSION",
      `the session is of format ${String(version)}, and this package reads ${LOG_VERSION}: ${Number(version) > LOG_VERSION ? "update it" : "export it with the version that wrote it"}`,
    );
  }
  if (typeof header.id !== "string" || header.id === "") bad("needs an `id`");
  if (id !== undefined && header.id !== id) bad(`is that of ${header.id}, not of ${id}`);
  if (!isCount(createdAt)) bad("needs `createdAt` in milliseconds");
  if (!isRecord(meta)) bad("needs `meta` as an object");
  for (const key of ["title", "cwd"] as const) {
    if (meta[key] !== undefined && typeof meta[key] !== "string") bad(`has a \`meta.${key}\` that is not text`);
  }
  if (meta.cwd !== undefined && !/^(\/|[A-Za-z]:[\\/]|\\\\|[a-z][a-z0-9+.-]*:)/.test(meta.cwd))
    bad("has a `meta.cwd` that is not absolute");
  if (parent !== undefined && (typeof parent?.id !== "string" || !isCount(parent.seq))) bad("has no valid `parent`");
  if (seedLength !== undefined && !isCount(seedLength)) bad("has no valid `seedLength`");
  return header;
}

/** It may say undefined for a field that it leaves out; whatever else it is, the copy judges. */
function plain(meta: SessionMeta): SessionMeta {
  return isObject(meta) && Object.getPrototypeOf(meta) === Object.prototype ? defined(meta) : meta;
}
