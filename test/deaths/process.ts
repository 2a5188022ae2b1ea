/** A process that lives on a file of SQLite until it is killed: `node <module> <file> <moment>`. */
import { writeSync } from "node:fs";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { live, type Moment } from "./life.ts";

const [file, moment] = process.argv.slice(2) as [string, Moment];

// Written at once, so that whoever reads knows of it even if the next statement is the last.
await live(nodeSqliteStorage(file), moment, (told) => void writeSync(1, `${JSON.stringify(told)}\n`));
