/** The header of a session, checked. */
import { TurnloopError } from "../errors.ts";
import { jsonCopy } from "../json.ts";
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
  return checkHeader(
    {
      version: LOG_VERSION,
      id,
      createdAt: Math.trunc(createdAt),
      meta: definedFields(meta ?? {}),
      ...(parent && { parent }),
      ...(seedLength !== undefined && { seedLength }),
    },
    id,
  );
}

/** The same for one that comes from outside. `id` is the one that was asked for. */
export function checkHeader(raw: unknown, id?: string): SessionHeader {
  const bad = (what: string): never => {
    throw new TurnloopError("INVALID_HEADER", `the header of the session ${what}`);
  };
  const header = jsonCopy(raw) as SessionHeader;
  if (typeof header !== "object" || header === null) bad("is not an object");
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
  if (typeof meta !== "object" || meta === null || Array.isArray(meta)) bad("needs `meta` as an object");
  for (const key of ["title", "cwd"] as const) {
    if (meta[key] !== undefined && typeof meta[key] !== "string") bad(`has a \`meta.${key}\` that is not text`);
  }
  if (meta.cwd !== undefined && !/^(\/|[A-Za-z]:[\\/]|\\\\|[a-z][a-z0-9+.-]*:)/.test(meta.cwd))
    bad("has a `meta.cwd` that is not absolute");
  if (parent !== undefined && (typeof parent?.id !== "string" || !isCount(parent.seq))) bad("has no valid `parent`");
  if (seedLength !== undefined && !isCount(seedLength)) bad("has no valid `seedLength`");
  return header;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** `meta` may say undefined for a field that it leaves out; whatever else it is, the copy judges. */
function definedFields(meta: SessionMeta): SessionMeta {
  if (typeof meta !== "object" || meta === null || Object.getPrototypeOf(meta) !== Object.prototype) return meta;
  return Object.fromEntries(Object.entries(meta).filter(([, value]) => value !== undefined));
}
