// `node evidence/mutation.mjs`: mutants of src by StrykerJS, then what became of them, by folder.
//
// node evidence/mutation.mjs --mutate src/lock/lock.ts     one file; the others keep what earlier runs have found
// node evidence/mutation.mjs --dev                         of the command and the local endpoints, with their tests
// node evidence/mutation.mjs --lua                         of the Lua scripts, by mutation/lua.mjs
// node evidence/mutation.mjs --scores                      only prints the table; with --dev that one

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { project } from "../tools/load.mjs";
import { npmCi } from "../tools/npm-ci.mjs";

const states = ["Killed", "Timeout", "Survived", "NoCoverage"];

/** Runs Stryker with these arguments. Resolves with its exit code. */
function stryker(args) {
  npmCi("evidence");
  const cli = join(project, "evidence/node_modules/.bin/stryker");
  const child = spawn(cli, ["run", "evidence/mutation/stryker.config.mjs", ...args], {
    cwd: project,
    stdio: "inherit",
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
}

/** How many mutants of each state a folder has, by folder. */
async function countsByFolder() {
  const report = new URL(`../reports/mutation${isDev ? "-dev" : ""}/mutation.json`, import.meta.url);
  const { files } = JSON.parse(await readFile(report, "utf8"));
  const folders = new Map();
  for (const [path, { mutants }] of Object.entries(files)) {
    const [, folder, file] = path.split("/").slice(isDev ? 1 : 0);
    const name = file ? folder : "shared files";
    const counts = folders.get(name) ?? new Map();
    folders.set(name, counts);
    for (const { status } of mutants) counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  return [...folders].sort(([a], [b]) => a.localeCompare(b));
}

function rowOf(folder, counts) {
  const [killed, timeout, survived, uncovered] = states.map((state) => counts.get(state) ?? 0);
  const noticed = killed + timeout;
  const score = `${((100 * noticed) / (noticed + survived + uncovered)).toFixed(1)} %`;
  return `| ${folder} | ${killed} | ${timeout} | ${survived} | ${uncovered} | ${score} |`;
}

async function printScores() {
  const rows = await countsByFolder();
  const all = new Map();
  for (const [, counts] of rows) for (const [state, n] of counts) all.set(state, (all.get(state) ?? 0) + n);
  console.log("| folder | killed | timeout | survived | not covered | score |");
  console.log("| --- | --- | --- | --- | --- | --- |");
  for (const [folder, counts] of [...rows, ["all", all]]) console.log(rowOf(folder, counts));
}

const args = process.argv.slice(2);
const own = ["--dev", "--lua", "--scores"];
const isDev = args.includes("--dev");
if (isDev) process.env.MUTATION = "dev";
const rest = args.filter((word) => !own.includes(word));
if (args.includes("--lua")) {
  process.exitCode = await (await import("./mutation/lua.mjs")).mutateScripts(rest);
} else {
  if (!args.includes("--scores")) process.exitCode = await stryker(rest);
  await printScores();
}
