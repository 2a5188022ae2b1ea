/** A host in a thread of its own: an agent whose model echoes. */
import { parentPort } from "node:worker_threads";
import { createHarness } from "../../src/index.ts";
import { scriptedModel, type ScriptedAnswer } from "../../src/testing/index.ts";
import { messagePort, serveAgents } from "../../adapters/transport/transport.ts";

const echo: ScriptedAnswer = ({ messages }) => `you said ${JSON.stringify(messages.at(-1)!.content)}`;
const server = serveAgents(createHarness({ model: scriptedModel([echo, echo]) }));
server.accept(messagePort(parentPort), { identity: null, rights: ["drive", "answer"] }, "s");
