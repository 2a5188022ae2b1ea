/** The demo in a terminal, by what it prints. */
import { execFileSync, spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { afterEach, beforeAll, expect, test } from "vitest";
import { root } from "../support/package.ts";

beforeAll(() => {
  // The terminal runs the built package, as a user of it would.
  execFileSync("npx", ["vite", "build", "--emptyOutDir", "false", "--logLevel", "warn"], {
    cwd: root,
    env: { ...process.env, VITEST: "" },
  });
});

let running: ChildProcessWithoutNullStreams | undefined;
afterEach(() => {
  running?.kill("SIGKILL");
});

/** A started demo. `sees` resolves when the text is printed after what was seen before. */
function start(): {
  say(line: string): void;
  sees(text: string): Promise<void>;
  stop(): void;
  ended: Promise<unknown>;
} {
  const child = spawn(process.execPath, ["demo/terminal.ts"], { cwd: root });
  running = child;
  let unseen = "";
  let look = (): void => {};
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      unseen += text;
      look();
    });
  }
  return {
    say: (line) => void child.stdin.write(`${line}\n`),
    sees: (text) =>
      new Promise((resolve, reject) => {
        look = () => {
          const at = unseen.indexOf(text);
          if (at < 0) return;
          look = () => {};
          unseen = unseen.slice(at + text.length);
          resolve();
        };
        child.on("exit", () => reject(new Error(`it ended before it printed "${text}", after:\n${unseen}`)));
        look();
      }),
    stop: () => void child.kill("SIGINT"),
    ended: once(child, "exit"),
  };
}

test("it streams, runs tools, asks for approval and asks questions", async () => {
  const { say, sees } = start();
  await sees("no language model");
  say("What is 12 * 12?");
  await sees('calculator {"expression":"12 * 12"}');
  await sees("= 144");
  await sees("> ");
  say("Add a note: milk");
  await sees("Allow add_note");
  say("y");
  await sees("= Added as note 1.");
  await sees("> ");
  say("Plan a dinner");
  await sees("Which kitchen do you like?");
  say("Japanese");
  await expect(sees("Matcha ice cream")).resolves.toBeUndefined();
});

test("a line steers a turn that runs; Ctrl+C stops it, and twice quits", async () => {
  const { say, sees, stop, ended } = start();
  await sees("> ");
  say("Add a note: milk");
  await sees("Allow add_note");
  say("n");
  await sees("the user did not allow it");
  await sees("> ");
  say("Write something long");
  await sees("A turn begins when");
  say("make it short");
  stop();
  await sees("stopped by the user");
  await sees("> ");
  say("/continue");
  await sees("> ");
  stop();
  await sees("again quits");
  stop();
  expect(await ended).toEqual([0, null]);
});
