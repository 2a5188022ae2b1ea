/** For the tests of programs that use this package, and of adapters for it. */
export { scriptedModel, type ScriptedAnswer, type ScriptedModel, type ScriptedParts } from "./scripted-model.ts";
export { replayModel } from "./replay-model.ts";
