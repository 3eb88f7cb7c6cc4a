// `node evidence/runtimes.mjs`: the cases of evidence/runtimes/cases.ts and `redis-rest-local` on every runtime, with the packed packages
// as a user installs them. Installs the runtimes of evidence/runtimes/matrix/package.json when it first runs. Prints the
// table of runtimes in docs/platforms.md; fails if anything fails or the page has another table.

import { spawn } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline/promises";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { EdgeVM } from "@edge-runtime/vm";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { load, project } from "../tools/load.mjs";
import { pinnedRuntime } from "./runtimes/matrix/pinned.mjs";

const matrix = join(project, "evidence/runtimes/matrix");

/**
 * A program of the matrix, with the sources' imports replaced by the package's. `bundle`: the package is included;
 * `external`: no package is, and this one is in `folder`.
 */
async function programOf(entry, { folder, stage, bundle, external = false, format = "esm" }) {
  const fromPackage = {
    name: "from-package",
    setup({ onResolve, resolve }) {
      onResolve({ filter: /\/src\/(.*)index\.ts$/ }, ({ path, kind }) => {
        const name = path
          .replace(/^.*\/local\/src/, "redis-rest-local")
          .replace(/^.*\/src/, "redlock-edge")
          .replace(/\/index\.ts$/, "");
        const [packed, part = ""] = name.split(/\/(.*)/);
        const file = join(folder, "node_modules", packed, "dist", part, "index.js");
        if (external) return { path: pathToFileURL(file).href, external };
        return bundle ? resolve(name, { resolveDir: folder, kind }) : { path: name, external: true };
      });
    },
  };
  const { outputFiles } = await build({
    entryPoints: [join(matrix, entry)],
    bundle: true,
    write: false,
    format,
    target: "es2022",
    define: { STAGE: JSON.stringify(stage) },
    plugins: [fromPackage],
    ...(external && { packages: "external", platform: "node" }),
    logLevel: "silent",
  });
  return outputFiles[0].text;
}

/** Runs a command, and resolves with the report that it prints. Then ends it: some cases leave a request without an answer. */
async function reportOf(command, args, cwd) {
  const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "inherit"] });
  try {
    for await (const line of createInterface(child.stdout)) {
      if (line.startsWith('{"passed":')) return JSON.parse(line);
    }
  } finally {
    child.kill("SIGKILL");
  }
  throw new Error(`${command} ${args.join(" ")} ended without a report`);
}

async function onWorkerd(script) {
  const worker = new Miniflare({ modules: true, script, compatibilityDate: "2026-04-01", cf: false });
  try {
    return await (await worker.dispatchFetch("http://worker/")).json();
  } finally {
    await worker.dispose();
  }
}

async function onEdgeRuntime(script) {
  const vm = new EdgeVM();
  vm.evaluate(script);
  return JSON.parse(await vm.evaluate("globalThis.report"));
}

async function versionOf(name) {
  return JSON.parse(await readFile(join(project, `node_modules/${name}/package.json`), "utf8")).version;
}

/** The runtimes with a command, and how each runs a file of JavaScript. */
const programs = {
  node: { title: "Node", options: [] },
  bun: { title: "Bun", options: ["run"] },
  // It would take the packages of this repository for its own.
  deno: { title: "Deno", options: ["run", "--allow-all", "--node-modules-dir=manual"] },
};

/** Whether `redis-rest-local` starts endpoints on this runtime, writes their file, and a lock can be acquired there. */
async function isDevServer(folder, command) {
  const { endpointsFromEnv, Redlock } = await import(
    pathToFileURL(join(folder, "node_modules/redlock-edge/dist/index.js")).href
  );
  const file = join(folder, ".dev.vars");
  await rm(file, { force: true });
  const cli = join(folder, "node_modules/redis-rest-local/dist/cli/main.js");
  const [program, ...args] = [...command, cli, "--count", "3", "--write-env", ".dev.vars"];
  const child = spawn(program, args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  const ended = new Promise((resolve) => child.on("close", resolve));
  try {
    for (let tries = 0; tries < 300; tries += 1) {
      const text = await readFile(file, "utf8").catch(() => "");
      if (!text.includes("TOKEN_3")) {
        await delay(100);
        continue;
      }
      const env = Object.fromEntries([...text.matchAll(/^(\w+)="(.*)"$/gm)].map(([, ...pair]) => pair));
      const redlock = new Redlock({ endpoints: endpointsFromEnv(env), timeout: 5_000 });
      return await (await redlock.acquire("runtimes", { fencing: true })).release();
    }
    return false;
  } finally {
    child.kill("SIGTERM");
    await ended;
  }
}

/** The runtimes with a command, and their reports. */
async function commandReports(folder, stage) {
  await writeFile(join(folder, "program.mjs"), await programOf("program.ts", { folder, stage }));
  // Where the frameworks are installed.
  const frameworks = join(project, "node_modules/.cache/frameworks.mjs");
  const text = await programOf("frameworks.ts", { folder, stage, external: true });
  await writeFile(frameworks, text);
  const found = [];
  const add = async (name, command) => {
    const report = await reportOf(command[0], [...command.slice(1), "program.mjs"], folder);
    const dev = (await isDevServer(folder, command)) ? "yes" : "no";
    const http = await reportOf(command[0], [...command.slice(1), frameworks], project);
    found.push([name, { ...report, dev, http }]);
  };
  await add(`Node ${process.versions.node.split(".")[0]}`, [process.execPath]);
  const { devDependencies } = JSON.parse(await readFile(join(matrix, "package.json"), "utf8"));
  for (const [program, { title, options }] of Object.entries(programs)) {
    for (const [name, version] of Object.entries(devDependencies)) {
      if (!name.startsWith(program)) continue;
      await add(`${title} ${version.replace(/^npm:.*@/, "")}`, [pinnedRuntime(name), ...options]);
    }
  }
  return found;
}

/** Each runtime's name, and its report. */
async function reports(folder, stage) {
  const worker = await programOf("worker.ts", { folder, stage, bundle: true });
  const edge = await programOf("edge.ts", { folder, stage, bundle: true, format: "iife" });
  return [
    ...(await commandReports(folder, stage)),
    [`workerd (Miniflare ${await versionOf("miniflare")})`, await onWorkerd(worker)],
    [`edge-runtime ${await versionOf("@edge-runtime/vm")}`, await onEdgeRuntime(edge)],
  ];
}

/** How many have passed, of how many. */
function shareOf({ passed, failed }) {
  return `${passed.length}/${passed.length + Object.keys(failed).length}`;
}

function rowOf([name, { awaitUsing, dev = "–", http, ...report }]) {
  return `| ${name} | ${shareOf(report)} | ${awaitUsing} | ${dev} | ${http ? shareOf(http) : "–"} |`;
}

const { openStage } = await load("evidence/runtimes/stage.ts");
const { installPacked } = await load("test/support/packed.ts");
const { stage, close } = await openStage();
const { folder, remove } = await installPacked();
try {
  const all = await reports(folder, stage);
  const rows = all.map(rowOf);
  console.log(
    [
      "| runtime | cases passed | `await using` | local endpoints | Express and Fastify |",
      "| --- | --- | --- | --- | --- |",
      ...rows,
    ].join("\n"),
  );
  for (const [name, { failed, dev, http }] of all) {
    if (dev === "no") {
      console.error(`\n${name}: redis-rest-local does not work`);
      process.exitCode = 1;
    }
    for (const [title, error] of Object.entries({ ...failed, ...http?.failed })) {
      console.error(`\n${name}: ${title}\n${error}`);
      process.exitCode = 1;
    }
  }
  const page = await readFile(join(project, "docs/platforms.md"), "utf8");
  const missing = rows.filter((row) => !page.includes(row));
  if (missing.length > 0) {
    console.error(`\nThe table of docs/platforms.md lacks:\n${missing.join("\n")}`);
    process.exitCode = 1;
  }
} finally {
  await close();
  remove();
}
