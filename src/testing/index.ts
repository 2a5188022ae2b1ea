/** For the tests of programs that use this package, and of adapters for it. */
export { scriptedModel, type ScriptedAnswer, type ScriptedModel, type ScriptedParts } from "./scripted-model.ts";
export { replayModel } from "./replay-model.ts";
export { storageContract } from "./storage-contract.ts";
export { transportContract, type ConnectionUnderTest, type TransportUnderTest } from "./transport-contract.ts";
