// `node evidence/mutation.mjs --lua [part of a path]`: mutants of the Lua scripts, which are strings to StrykerJS. Runs the tests
// that `node evidence/mutation.mjs` runs, on embedded engines, and for each script only the files that send it.

import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import process from "node:process";
import { createVitest } from "vitest/node";
import { project } from "../../tools/load.mjs";
import { luaFiles } from "../../tools/lua.mjs";
import { mutantsOf } from "./lua-mutants.mjs";
import { changesNothing, staleLines } from "./lua-same.mjs";

/** ms without a new test after which a mutant counts as an endless loop. In virtual time a test's own timeout never comes. */
const longestSilence = 60_000;

/** How many test files one process imports, each once per mutant. All are imported before the first test runs. */
const importsAtOnce = 700;

/** What Vite puts in the place of every script's module: getters that note which file sends the script. */
const noteSenders = (log) => ({
  name: "lua-senders",
  enforce: "pre",
  transform(code, id) {
    if (!id.endsWith(".lua.ts")) return null;
    const line = JSON.stringify(`${relative(project, id).replaceAll("\\", "/").slice(0, -".ts".length)}\t`);
    const note = `process.getBuiltinModule("fs").appendFileSync(${JSON.stringify(log)}, ${line} + globalThis.__vitest_worker__.filepath + "\\n")`;
    // Worlds in virtual time load scripts that perhaps nobody sends.
    const noteUnlessLoaded = `if (!new Error().stack.includes("/test/support/virtual-")) ${note}`;
    return code.replace(
      /source: (`[^`]*`),\n {2}sha: (\{[^}]*\})/,
      (_, source, sha) =>
        `get source() { ${noteUnlessLoaded}; return ${source}; }, get sha() { ${note}; return ${sha}; }`,
    );
  },
});

/** The test files that send each of these scripts, the fastest first. */
async function findSenders(directory, files) {
  const log = join(directory, "senders");
  const related = files.map((file) => join(project, `${file}.ts`));
  const options = {
    config: "evidence/mutation/vitest.config.ts",
    root: project,
    watch: false,
    reporters: [{}],
    related,
  };
  const vitest = await createVitest("test", options, { plugins: [noteSenders(log)] });
  try {
    const { testModules } = await vitest.runTestSpecifications(await vitest.getRelevantTestSpecifications());
    // With other work on the machine, one that measures time may fail. It would kill every mutant.
    const sound = testModules.filter((module) => module.ok());
    for (const module of testModules) {
      if (!module.ok())
        console.log(`left out, because it fails without a mutant: ${module.relativeModuleId}`);
    }
    const lines = new Set(readFileSync(log, "utf8").trim().split("\n"));
    const fastest = sound.sort((one, other) => one.diagnostic().duration - other.diagnostic().duration);
    const names = fastest.map(({ moduleId }) => moduleId);
    return (file) => names.filter((name) => lines.has(`${file}\t${name}`));
  } finally {
    await vitest.close();
  }
}

/** Runs the tests for one mutant after another, from `first` to `last`, in one process, until one hangs. */
async function runTests(directory, order) {
  const [orderFile, log] = [join(directory, "order.json"), join(directory, "results")];
  await rm(log, { force: true });
  await writeFile(orderFile, JSON.stringify({ ...order, log }));
  const config = join("evidence", "mutation", "lua.config.ts");
  const child = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", "run", "--config", config], {
    cwd: project,
    env: { ...process.env, LUA_MUTANTS: orderFile },
    stdio: "ignore",
    detached: true,
  });
  // Its workers, too.
  const kill = () => process.kill(-child.pid, "SIGKILL");
  const read = () => (existsSync(log) ? readFileSync(log, "utf8").split("\n").slice(0, -1) : []);
  let [news, at] = [0, performance.now()];
  const watch = setInterval(() => {
    const { length } = read();
    if (length > news) [news, at] = [length, performance.now()];
    else if (performance.now() - at > longestSilence) kill();
  }, 1_000);
  const interrupted = () => {
    kill();
    process.exit(1);
  };
  process.once("SIGINT", interrupted);
  await new Promise((resolve) => child.on("close", resolve));
  process.off("SIGINT", interrupted);
  clearInterval(watch);
  return read().flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
}

/** By mutant: why its tests failed; undefined where they passed. */
async function tryAll(directory, order) {
  const { mutants, tests } = order;
  const atOnce = Math.ceil(importsAtOnce / tests.length);
  const reasons = new Map();
  for (let first = 0; first <= mutants.length; ) {
    const last = Math.min(first + atOnce - 1, mutants.length);
    const results = await runTests(directory, { ...order, first, last });
    for (const { index, failed } of results) reasons.set(index, failed);
    first += results.length;
    if (first <= last) {
      // The one that has not ended.
      reasons.set(first, "it hangs");
      first += 1;
    }
    if (reasons.get(0)) throw new Error(`without a mutant a test fails: ${reasons.get(0)}`);
  }
  return reasons;
}

/** Tries the mutants of one script. Prints those that survive, and resolves with how many these are. */
async function tryMutants(directory, file, tests) {
  const source = readFileSync(join(project, file), "utf8");
  const all = mutantsOf(source);
  for (const line of staleLines(file, all))
    console.log(`lua-same.mjs has a line that is not a mutant: ${line}`);
  const mutants = all.filter((mutant) => !changesNothing(file, mutant));
  console.log(`${file}: ${mutants.length} mutants, ${tests.length} test files`);
  const reasons = await tryAll(directory, { file, mutants, tests });
  // Number 0 is the script without a mutant.
  const survivors = mutants.filter((_, index) => !reasons.get(index + 1));
  for (const { line, from, to } of survivors) {
    console.log(
      `SURVIVED ${file}:${line}: ${from.trim()} → ${to.trim()}\n    ${source.split("\n")[line - 1].trim()}`,
    );
  }
  const killed = mutants.length - survivors.length;
  const same = all.length - mutants.length;
  console.log(`${file}: ${killed} of ${mutants.length} killed; ${same} are known to change nothing`);
  return survivors.length;
}

/**
 * Tries all mutants of the scripts whose path contains one of `parts`, or of all. Prints those that survive. Resolves
 * with the exit code: 1 if any survives.
 *
 * @param {string[]} parts
 */
export async function mutateScripts(parts) {
  const directory = await mkdtemp(join(tmpdir(), "lua-mutants-"));
  try {
    const chosen = luaFiles().filter(
      (file) => parts.length === 0 || parts.some((part) => file.includes(part)),
    );
    const sendersOf = await findSenders(directory, chosen);
    let survived = 0;
    for (const file of chosen) survived += await tryMutants(directory, file, sendersOf(file));
    return survived > 0 ? 1 : 0;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
