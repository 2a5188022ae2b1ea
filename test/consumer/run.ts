/**
 * Installs a packed tarball as a stranger would, type-checks programs that use it as Node and as a bundler
 * resolve it, and runs them. First without the optional peers, then with them.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { readManifest, root } from "../support/package.ts";

/** What `npm install` would bring along, and what somebody with every adapter has installed beside it. */
const DEPENDENCIES = Object.keys(readManifest().dependencies ?? {});
const PEERS = [...Object.keys(readManifest().peerDependencies ?? {}), "@types/react", "csstype"];
const RESOLUTIONS = [
  { module: "nodenext", moduleResolution: "nodenext" },
  { module: "esnext", moduleResolution: "bundler" },
];

const tarball = process.argv[2];
if (tarball === undefined) throw new Error("say which tarball to install: node test/consumer/run.ts turnloop.tgz");

const folder = mkdtempSync(join(tmpdir(), "turnloop-consumer-"));
try {
  writeFileSync(join(folder, "package.json"), `{ "type": "module", "private": true }`);
  install(tarball);
  check("core.ts");
  for (const one of [...DEPENDENCIES, ...PEERS]) link(one);
  check("adapters.ts");
} finally {
  rmSync(folder, { recursive: true });
}

/** What `npm install` does with a tarball, without a network. */
function install(file: string): void {
  const target = join(folder, "node_modules", readManifest().name);
  mkdirSync(target, { recursive: true });
  execFileSync("tar", ["-xzf", resolve(file), "-C", target, "--strip-components=1"]);
}

function link(peer: string): void {
  const target = join(folder, "node_modules", peer);
  mkdirSync(dirname(target), { recursive: true });
  symlinkSync(join(root, "node_modules", peer), target);
}

function check(program: string): void {
  copyFileSync(join(root, "test/consumer", program), join(folder, program));
  for (const resolution of RESOLUTIONS) {
    const compilerOptions = {
      ...resolution,
      strict: true,
      exactOptionalPropertyTypes: true,
      target: "es2022",
      lib: ["es2022", "dom"],
      types: [],
      noEmit: true,
      // The declarations of the package are checked too; those of its peers are their makers' business.
      skipLibCheck: program !== "core.ts",
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: [program] }));
    execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", folder], { stdio: "inherit" });
    console.log(`${program} type-checks with ${resolution.moduleResolution}`);
  }
  execFileSync(process.execPath, [program], { cwd: folder, stdio: "inherit" });
  console.log(`${program} runs`);
}
