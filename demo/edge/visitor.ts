/** Who a visitor is: whoever has the secret in the cookie owns the chats whose ids begin with its hash. */

/** The secret, out of reach of the page's scripts. */
const SECRET = "visitor";
/** What the page itself may know: the owner of its chats, and the model that answers. */
export const SHOWN = "edge";

const YEAR = 365 * 24 * 60 * 60;

export function newSecret(): string {
  return crypto.randomUUID() + crypto.randomUUID();
}

export function secretIn(request: Request): string | undefined {
  return cookieOf(request.headers.get("cookie") ?? "", SECRET);
}

/** An id grants nothing to those who only know it. */
export async function ownerOf(secret: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(secret));
  return Array.from(new Uint8Array(hash, 0, 12), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Of a chat's id. */
export function ownerIn(id: string): string {
  return id.slice(0, id.indexOf("."));
}

export async function mayUse(request: Request, chat: string): Promise<boolean> {
  const secret = secretIn(request);
  return secret !== undefined && (await ownerOf(secret)) === ownerIn(chat);
}

/** For the answer that brings the page. */
export async function cookiesFor(request: Request, model: string): Promise<readonly string[]> {
  const secret = secretIn(request) ?? newSecret();
  const common = `Path=/; SameSite=Strict; Max-Age=${YEAR}${request.url.startsWith("https:") ? "; Secure" : ""}`;
  const shown = `${await ownerOf(secret)} ${model}`;
  return [`${SECRET}=${secret}; HttpOnly; ${common}`, `${SHOWN}=${encodeURIComponent(shown)}; ${common}`];
}

export function cookieOf(cookies: string, name: string): string | undefined {
  const found = cookies.split("; ").find((cookie) => cookie.startsWith(`${name}=`));
  return found?.slice(name.length + 1);
}
