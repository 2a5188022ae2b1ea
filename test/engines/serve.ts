/** A page on loopback whose script is one file of the tests, bundled with the package's sources. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { build, type Rolldown } from "vite";
import { readEntries, root } from "../support/package.ts";

export interface ServedPage {
  /** With a slash at its end. `sandboxed` behind it holds the page in a frame that has no origin. */
  readonly url: string;
  close(): void;
}

/** `file`: the path of the script from the root of the project. */
export async function servePage(file: string): Promise<ServedPage> {
  const pages: Readonly<Record<string, readonly [type: string, text: string]>> = {
    "/": ["text/html", '<!doctype html><script type="module" src="/page.js"></script>'],
    "/sandboxed": ["text/html", '<!doctype html><iframe sandbox="allow-scripts" src="/"></iframe>'],
    "/page.js": ["text/javascript", await bundle(file)],
  };
  const server = createServer(({ url = "/" }, response) => {
    const [type, text] = pages[url] ?? ["text/plain", ""];
    // A sandboxed frame must be allowed to load the script.
    response.setHeader("access-control-allow-origin", "*").setHeader("content-type", type).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function bundle(file: string): Promise<string> {
  const alias = readEntries().map(({ specifier, source }) => ({
    find: new RegExp(`^${specifier}$`),
    replacement: source,
  }));
  const result = await build({
    root,
    configFile: false,
    logLevel: "error",
    resolve: { alias },
    build: {
      write: false,
      target: "es2022",
      lib: { entry: join(root, file), formats: ["es"], fileName: "page" },
      rolldownOptions: { output: { codeSplitting: false } },
    },
  });
  const [output] = (Array.isArray(result) ? result : [result]) as readonly Rolldown.RolldownOutput[];
  return output!.output[0].code;
}
