/** The smoke test as a program of its own, for runtimes that have a command line. */
import { smoke } from "./smoke.js";

console.log(await smoke());
