/** The Worker: the page, its chats over WebSockets, and what is done with them beside talking. */
import { routeAgentRequest } from "turnloop/durable-object";
import { modelName, objectOf, type Env } from "./chat.ts";
import { cookiesFor, mayUse, ownerIn, ownerOf, secretIn } from "./visitor.ts";

export { Chat } from "./chat.ts";
export { Shelf } from "./shelf.ts";

const LONGEST_TITLE = 200;

async function answer(request: Request, env: Env): Promise<Response> {
  const agent = await routeAgentRequest(request, env, {
    namespace: ({ CHATS }) => CHATS,
    authorize: async (asked, chat) =>
      (await mayUse(asked, chat)) ? { identity: ownerIn(chat), rights: ["drive", "answer"] } : undefined,
  });
  if (agent) return agent;
  const { pathname } = new URL(request.url);
  if (pathname.startsWith("/api/")) return api(request, env, pathname.slice("/api/".length));
  const page = await env.ASSETS.fetch(request);
  const answered = new Response(page.body, page);
  for (const cookie of await cookiesFor(request, modelName(env))) answered.headers.append("set-cookie", cookie);
  return answered;
}

/** `chats`, and `chats/<id>`. */
async function api(request: Request, env: Env, path: string): Promise<Response> {
  const secret = secretIn(request);
  if (secret === undefined || !isOwnPage(request)) return new Response(null, { status: 403 });
  const [kind, chat, ...more] = path.split("/").map(decodeURIComponent);
  if (kind !== "chats" || more.length > 0) return new Response(null, { status: 404 });
  if (chat === undefined) {
    const shelf = objectOf(env.SHELVES, await ownerOf(secret));
    return request.method === "GET" ? Response.json(await shelf.list()) : new Response(null, { status: 405 });
  }
  if (!(await mayUse(request, chat))) return new Response(null, { status: 403 });
  const object = objectOf(env.CHATS, chat);
  switch (request.method) {
    case "GET":
      return Response.json(await object.lines());
    case "PUT": {
      const refusal = await object.begin([await request.text()]);
      if (!refusal) return new Response(null, { status: 201 });
      return Response.json(refusal, { status: refusal.code === "SESSION_EXISTS" ? 409 : 400 });
    }
    case "PATCH": {
      const title = (await request.text()).trim();
      if (title === "" || title.length > LONGEST_TITLE) return new Response(null, { status: 400 });
      await object.rename(title);
      return new Response(null, { status: 204 });
    }
    case "DELETE":
      await object.erase();
      return new Response(null, { status: 204 });
    default:
      return new Response(null, { status: 405 });
  }
}

/** No other site changes anything with the visitor's cookie. */
function isOwnPage(request: Request): boolean {
  const origin = request.headers.get("origin");
  return origin === null ? request.method === "GET" : origin === new URL(request.url).origin;
}

// The platform wants the worker as a default export.
// oxlint-disable-next-line import/no-default-export
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    try {
      return await answer(request, env);
    } catch (error) {
      const code = (error as { code?: unknown } | null)?.code;
      if (code === "SESSION_NOT_FOUND") return new Response(null, { status: 404 });
      // No text that was ever encoded.
      if (error instanceof URIError) return new Response(null, { status: 400 });
      throw error;
    }
  },
};
