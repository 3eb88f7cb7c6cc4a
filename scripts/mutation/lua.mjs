// `npm run mutation -- --lua [part of a file's path]`: mutants of the Lua scripts, which are strings to StrykerJS. Runs
// the tests that `npm run mutation` runs, on embedded engines, and for each script only the files that send it.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import process from "node:process";
import { createVitest } from "vitest/node";
import { project } from "../load.mjs";
import { mutantsOf } from "./lua-mutants.mjs";
import { changesNothing } from "./lua-same.mjs";

const files = [
  "redis/cell-script",
  "redis/claim-script",
  "lock/wake-up/publish-script",
  "sync/debounce",
  "sync/internal/arrivals",
  "sync/internal/members",
  "sync/internal/queue-requests",
  "sync/internal/force-release",
  "sync/internal/slots",
  "sync/internal/interval",
].map((name) => join(project, `src/${name}.ts`));
const [cell] = files;
const pattern = /source: `([^`]*)`,\n {2}sha: \{[^}]*\}/;
const flag = "#!lua flags=allow-key-locking\n";
/** ms for the tests of one mutant; all files together take less. */
const longestRun = 300_000;
const sha = (text) => createHash("sha1").update(text).digest("hex");

/** Puts one mutant at a time into the sources that the tests load, and notes in `log` which files send a script. */
class Mutations {
  #sources;
  #log;
  #active;

  constructor(sources, log) {
    this.#sources = sources;
    this.#log = log;
  }

  /** @param {{ file: string, source: string } | undefined} mutant */
  activate(mutant) {
    this.#active = mutant;
  }

  /** For Vite. */
  get plugin() {
    return {
      name: "lua-mutants",
      enforce: "pre",
      transform: (code, id) =>
        this.#sources.has(id) ? code.replace(pattern, () => this.#scriptOf(id)) : null,
    };
  }

  #textOf(file) {
    const text = this.#active?.file === file ? this.#active.source : this.#sources.get(file);
    return text.replace(/\$\{cellScript\.source\}/, () => this.#textOf(cell));
  }

  #scriptOf(file) {
    const text = this.#textOf(file);
    const hashes = JSON.stringify({ redis: sha(text), upstash: sha(flag + text) });
    if (this.#active) return `source: ${JSON.stringify(text)}, sha: ${hashes}`;
    const note = `process.getBuiltinModule("fs").appendFileSync(${JSON.stringify(this.#log)}, ${JSON.stringify(file)} + "\\t" + globalThis.__vitest_worker__.filepath + "\\n")`;
    return `get source() { ${note}; return ${JSON.stringify(text)}; }, get sha() { ${note}; return ${hashes}; }`;
  }
}

/**
 * Runs test files one after another until one fails. Resolves with whether all passed, also if a worker had to be killed:
 * in virtual time a mutant may keep it busy for ever, where a test's own timeout never comes.
 */
async function passes(vitest, specifications) {
  for (const file of files) vitest.invalidateFile(file);
  const limit = setTimeout(killWorkers, longestRun);
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  clearTimeout(limit);
  // Vitest also hands out those of earlier runs: one that failed for a mutant of another script says nothing.
  const mine = new Set(specifications.map(({ moduleId }) => moduleId));
  const failed = testModules.filter((module) => mine.has(module.moduleId) && !module.ok());
  return unhandledErrors.length === 0 && failed.length === 0;
}

/** Kills the workers of this process, which Vitest does not hand out. */
function killWorkers() {
  const { stdout } = spawnSync("pgrep", ["-P", String(process.pid), "-f", "vitest"], { encoding: "utf8" });
  for (const pid of stdout.trim().split("\n").filter(Boolean)) process.kill(Number(pid), "SIGKILL");
}

/** The test files that send each script, the fastest first. */
async function findSenders(vitest, log) {
  const all = await vitest.globTestSpecifications();
  if (!(await passes(vitest, all))) {
    const failed = vitest.state.getTestModules().filter((module) => !module.ok());
    throw new Error(`without a mutant tests fail: ${failed.map(({ moduleId }) => moduleId).join(" ")}`);
  }
  const lines = new Set((await readFile(log, "utf8")).trim().split("\n"));
  const took = ({ moduleId }) =>
    vitest.state
      .getTestModules()
      .find((module) => module.moduleId === moduleId)
      ?.diagnostic().duration ?? 0;
  return (file) =>
    all
      .filter(({ moduleId }) => lines.has(`${file}\t${moduleId}`))
      .sort((one, other) => took(one) - took(other));
}

/** Tries the mutants of one script. Prints those that survive, and resolves with how many these are. */
async function tryMutants(name, source, isKilled) {
  const counts = { killed: 0, survived: 0, same: 0 };
  for (const mutant of mutantsOf(source)) {
    const line = source.split("\n")[mutant.line - 1].trim();
    if (changesNothing(name, mutant)) {
      counts.same += 1;
    } else if (await isKilled(mutant.source)) {
      counts.killed += 1;
    } else {
      counts.survived += 1;
      const change = `${mutant.from.trim()} → ${mutant.to.trim()}`;
      console.log(`SURVIVED ${name}, line ${mutant.line} of the script: ${change}\n    ${line}`);
    }
  }
  const { killed, survived, same } = counts;
  console.log(`${name}: ${killed} of ${killed + survived} killed; ${same} are known to change nothing`);
  return survived;
}

/**
 * Tries all mutants of the scripts whose path contains one of `parts`, or of all. Prints those that survive. Resolves
 * with the exit code: 1 if any survives.
 *
 * @param {string[]} parts
 */
export async function mutateScripts(parts) {
  const directory = await mkdtemp(join(tmpdir(), "lua-mutants-"));
  const log = join(directory, "senders");
  const sources = new Map();
  for (const file of files) sources.set(file, pattern.exec(await readFile(file, "utf8"))[1]);
  const mutations = new Mutations(sources, log);
  const options = {
    config: "vitest.mutation.config.ts",
    root: project,
    watch: false,
    bail: 1,
    maxWorkers: 1,
  };
  const reporters = [{}];
  const vitest = await createVitest("test", { ...options, reporters }, { plugins: [mutations.plugin] });
  let exitCode = 0;
  try {
    const sendersOf = await findSenders(vitest, log);
    const chosen = files.filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)));
    for (const file of chosen) {
      const senders = sendersOf(file);
      const isKilled = async (source) => {
        mutations.activate({ file, source });
        return !(await passes(vitest, senders));
      };
      console.log(`${relative(project, file)}: ${senders.length} test files`);
      if ((await tryMutants(relative(project, file), sources.get(file), isKilled)) > 0) exitCode = 1;
      mutations.activate(undefined);
    }
  } finally {
    await vitest.close();
    await rm(directory, { recursive: true, force: true });
  }
  return exitCode;
}
