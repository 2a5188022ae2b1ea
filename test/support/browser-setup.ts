/** Starts the provider that pages under test talk to, and tells them where it is. */
import type { TestProject } from "vitest/node";
import { haveFixtures, startProviderServer } from "./provider-server.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Where the provider listens; an address for it is made by `providerUrl`. */
    provider: string;
    /** Whether it has recorded streams. */
    haveFixtures: boolean;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startProviderServer();
  project.provide("provider", server.url);
  project.provide("haveFixtures", haveFixtures);
  return () => server.close();
}
