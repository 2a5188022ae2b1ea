/** Starts the provider that pages under test talk to, and tells them where it is. */
import type { TestProject } from "vitest/node";
import { startMcpServers } from "../adapters/mcp-cors.ts";
import { haveFixtures, startProviderServer } from "./provider-server.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Where the provider listens; an address for it is made by `providerUrl`. */
    provider: string;
    /** Whether it has recorded streams. */
    haveFixtures: boolean;
    /** Servers with a tool `look`: of the newest protocol, and of the one before. */
    mcp: { readonly modern: string; readonly legacy: string };
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startProviderServer();
  project.provide("provider", server.url);
  project.provide("haveFixtures", haveFixtures);
  const mcp = await startMcpServers();
  project.provide("mcp", mcp.urls);
  return async () => {
    await server.close();
    await mcp.close();
  };
}
