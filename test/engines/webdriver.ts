/** As much of the WebDriver protocol as a page needs that is opened, asked and reloaded. */

export interface WebDriver {
  go(url: string): Promise<void>;
  reload(): Promise<void>;
  /** Runs the body of a function, and awaits what it returns. */
  execute(body: string): Promise<unknown>;
  quit(): Promise<void>;
}

/** `server` may still be starting. */
export async function connectWebDriver(server: string, capabilities: object): Promise<WebDriver> {
  async function ask(method: string, path: string, body?: object): Promise<unknown> {
    const response = await fetch(`${server}/session${path}`, { method, ...(body && { body: JSON.stringify(body) }) });
    const { value } = (await response.json()) as { value: { message?: string } | null };
    if (!response.ok) throw new Error(`WebDriver: ${value?.message}`);
    return value;
  }

  async function begin(): Promise<string> {
    for (let tries = 1; ; tries += 1) {
      try {
        const value = await ask("POST", "", { capabilities: { alwaysMatch: capabilities } });
        return `/${(value as { sessionId: string }).sessionId}`;
      } catch (thrown) {
        if (tries === 50 || !(thrown instanceof TypeError)) throw thrown;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    }
  }

  const session = await begin();
  await ask("POST", `${session}/timeouts`, { script: 300_000 });
  return {
    go: async (url) => void (await ask("POST", `${session}/url`, { url })),
    reload: async () => void (await ask("POST", `${session}/refresh`, {})),
    execute: (script) => ask("POST", `${session}/execute/sync`, { script, args: [] }),
    quit: async () => void (await ask("DELETE", session)),
  };
}
