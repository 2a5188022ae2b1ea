/** How the package is built, its demo served, and its tests run. */
import { isAbsolute, join } from "node:path";
import { playwright } from "@vitest/browser-playwright";
import { transformWithOxc } from "vite";
import { defineConfig, type ViteUserConfig } from "vitest/config";
import { offlineWorker } from "./demo/offline-worker.ts";
import { browserArgs, findBrowser } from "./test/support/browser.ts";
import { readEntries, root } from "./test/support/package.ts";
import { readPrograms } from "./test/support/readme.ts";

const entries = readEntries();

/** Tests and demo import the package by its name, and get its sources. */
const alias = entries.map(({ specifier, source }) => ({ find: new RegExp(`^${specifier}$`), replacement: source }));

/** One file in dist/ for each entry of the package; whatever is not ours stays an import. */
const library: ViteUserConfig = {
  build: {
    outDir: "dist",
    target: "es2022",
    minify: false,
    lib: { entry: Object.fromEntries(entries.map(({ name, source }) => [name, source])), formats: ["es"] },
    rolldownOptions: {
      external: (id) => !id.startsWith(".") && !isAbsolute(id),
      output: {
        chunkFileNames: "shared/[name].js",
        // To find and read a file takes longer than to parse it: the core is one, but for what is loaded on demand. The
        // types carry the comments.
        codeSplitting: {
          groups: [
            { name: "core", test: /\/src\/(?!index|core|testing\/|view\/|plugins\/|storage\/lines|life\/fork)/ },
          ],
        },
        comments: { legal: true, annotation: true, jsdoc: false },
      },
    },
  },
};

/** zod says its messages in forty languages, a quarter of what the page would download; the page reads none. */
const withoutLocales = {
  name: "zod-without-locales",
  load: (id: string) => (id.endsWith("/zod/v4/locales/index.js") ? "export {};" : undefined),
};

/** `--mode demo`: the page in demo/, which imports the package's sources. */
const demo: ViteUserConfig = {
  root: "demo",
  base: "./",
  resolve: { alias },
  plugins: [withoutLocales, offlineWorker()],
  server: { host: "127.0.0.1", fs: { allow: [root] } },
  build: { outDir: "dist", target: "es2022" },
};

/** `--mode edge`: the same page, for chats that live at the edge. */
const edgePage: ViteUserConfig = {
  ...demo,
  define: { "import.meta.env.VITE_PLACE": '"edge"' },
  build: { outDir: "edge/site", target: "es2022" },
};

/** `--mode edge-worker`: the Worker that serves it, in one file. */
const edgeWorker: ViteUserConfig = {
  root: "demo/edge",
  resolve: { alias },
  plugins: [withoutLocales],
  build: {
    outDir: "dist",
    target: "es2022",
    lib: { entry: "worker.ts", formats: ["es"], fileName: "worker" },
    rolldownOptions: { external: /^(cloudflare|node):/, output: { codeSplitting: false } },
  },
};

const MODES: Readonly<Record<string, ViteUserConfig>> = { demo, edge: edgePage, "edge-worker": edgeWorker };

const executablePath = findBrowser();

/** `virtual:readme/chat.ts` is the program of that name in README.md. */
const readmePrograms = {
  name: "readme-programs",
  resolveId: (id: string) => (id.startsWith("virtual:readme/") ? `\0${id}` : undefined),
  async load(id: string) {
    const program = readPrograms().find(({ name }) => id === `\0virtual:readme/${name}`);
    return program && (await transformWithOxc(program.code, program.name)).code;
  },
};

/** In tests the package watches its sessions: what must always hold is looked at after each test. */
const watched = { find: /^turnloop$/, replacement: join(root, "test/support/turnloop.ts") };

const tests: ViteUserConfig = {
  resolve: { alias: [watched, ...alias] },
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "node",
          setupFiles: ["test/support/setup.ts"],
          // For a test that hangs: on a busy machine one that does much takes its time.
          testTimeout: 30_000,
          include: ["test/**/*.test.{ts,tsx}"],
          exclude: ["test/{browser,e2e,types}/**"],
        },
      },
      {
        extends: true,
        plugins: [readmePrograms],
        // Found in the middle of a run, they would reload its page.
        optimizeDeps: { include: ["svelte/store", "vue"] },
        define: {
          __VUE_OPTIONS_API__: false,
          __VUE_PROD_DEVTOOLS__: false,
          __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: false,
        },
        test: {
          name: "browser",
          setupFiles: ["test/support/setup.ts"],
          testTimeout: 30_000,
          include: ["test/browser/**/*.test.{ts,tsx}"],
          globalSetup: "test/support/browser-setup.ts",
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            provider: playwright({
              launchOptions: { args: [...browserArgs], ...(executablePath === undefined ? {} : { executablePath }) },
            }),
            instances: [{ browser: "chromium" }],
          },
        },
      },
      {
        extends: true,
        test: {
          name: "types",
          include: [],
          typecheck: {
            enabled: true,
            only: true,
            include: ["test/types/**/*.test-d.ts"],
            tsconfig: "tsconfig.json",
            // The step before tells of those.
            ignoreSourceErrors: true,
          },
        },
      },
      {
        extends: true,
        test: { name: "e2e", include: ["test/e2e/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
      },
    ],
  },
};

export default defineConfig(({ mode }) => {
  return MODES[mode] ?? (process.env["VITEST"] ? tests : library);
});
