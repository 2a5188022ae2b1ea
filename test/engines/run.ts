/** The browser's storage and the demo in all three engines, and tabs in those that open several: `npm run test:engines`, or `-- firefox` for one of them. */
import assert from "node:assert/strict";
import { serveDemo } from "../e2e/demo-serve.ts";
import { checkDemo } from "./demo.ts";
import { openChromium, openFirefox, openWebKit, type Engine } from "./engines.ts";
import { ensureEngines } from "./install.ts";
import { servePage } from "./serve.ts";
import { checkTabs } from "./tabs.ts";

const ENGINES: Readonly<Record<string, () => Promise<Engine>>> = {
  chromium: openChromium,
  firefox: openFirefox,
  webkit: openWebKit,
};

/** Answers what it has seen to hold. */
async function check(engine: Engine, url: string): Promise<string> {
  await engine.open(url);
  const { held, broken } = await engine.call("contract");
  assert.deepEqual(broken, []);

  const stored = await engine.call("write", 1000);
  assert.equal(stored, 1000);
  await engine.call("hold", 25);
  await engine.reload();
  assert.deepEqual(await engine.call("read"), { stored: stored + 25, told: [] });
  const shown = await checkDemo(engine, demo.url);
  await engine.open(url);
  const seen = `${held} sentences of the contract, a reload with 25 events that were not stored yet, ${shown}`;
  if (!engine.killAndReopen) return seen;

  const more = await engine.call("write", 1000);
  assert.equal(more, stored + 1025);
  await engine.killAndReopen(url);
  assert.deepEqual(await engine.call("read"), { stored: more, told: [] });
  if (!engine.openTab) return `${seen}, SIGKILL`;
  const { openTab } = engine;
  return `${seen}, SIGKILL, ${await checkTabs(() => openTab(tabs.url))}`;
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !Object.hasOwn(ENGINES, name));
if (unknown.length > 0) {
  throw new Error(`no such engine: ${unknown.join(", ")}; there are ${Object.keys(ENGINES).join(", ")}`);
}

ensureEngines();
const site = await servePage("test/engines/page.ts");
const tabs = await servePage("test/e2e/tabs-page.ts");
const demo = await serveDemo();
for (const [name, open] of Object.entries(ENGINES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  try {
    const engine = await open();
    try {
      console.log(`${name}: passed (${await check(engine, site.url)})`);
    } finally {
      await engine.close();
    }
  } catch (thrown) {
    process.exitCode = 1;
    console.error(`${name}: failed`, thrown);
  }
}
site.close();
tabs.close();
await demo.close();
