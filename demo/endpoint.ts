/** An OpenAI-compatible endpoint that the visitor chose: how it is kept, and made a model of. */
import type { Model } from "turnloop";

export interface Endpoint {
  readonly api: "responses" | "chat";
  readonly baseURL: string;
  readonly model: string;
  /** May be empty: a server of one's own needs none. */
  readonly apiKey: string;
}

const KEY = "turnloop-demo-endpoint";

/** From this tab's session storage: it ends with the tab, and no other page reads it. */
export function storedEndpoint(): Endpoint | undefined {
  try {
    const stored = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Partial<Endpoint> | null;
    if (typeof stored?.baseURL !== "string" || typeof stored.model !== "string") return undefined;
    const { api, baseURL, model, apiKey } = stored;
    return { api: api === "responses" ? "responses" : "chat", baseURL, model, apiKey: apiKey ?? "" };
  } catch {
    return undefined;
  }
}

export function storeEndpoint(endpoint: Endpoint | undefined): void {
  try {
    if (endpoint) sessionStorage.setItem(KEY, JSON.stringify(endpoint));
    else sessionStorage.removeItem(KEY);
  } catch {
    // Storage is off in this browser: the endpoint then lasts until the page is left.
  }
}

/** Loads the provider's client, which the scripted demo does not need. */
export async function connect({ api, baseURL, model, apiKey }: Endpoint): Promise<Model> {
  const { aiSdkModel } = await import("turnloop/ai-sdk");
  if (api === "responses") {
    const { createOpenAI } = await import("@ai-sdk/openai");
    return aiSdkModel(createOpenAI({ baseURL, apiKey }).responses(model));
  }
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const provider = createOpenAICompatible({ name: "endpoint", baseURL, includeUsage: true, ...(apiKey && { apiKey }) });
  return aiSdkModel(provider(model));
}
