// `node evidence/mutation.mjs --lua [part of a path]`: mutants of the Lua scripts, which are strings to StrykerJS. Each is
// held against the twin of its script in random calls, as evidence/twins holds the script itself.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { load, project } from "../../tools/load.mjs";
import { luaFiles, scriptOf } from "../../tools/lua.mjs";
import { mutantsOf } from "./lua-mutants.mjs";
import { changesNothing, staleLines } from "./lua-same.mjs";

/** How many plays of 60 calls a mutant may survive before it counts as not noticed. */
const plays = 400;

const read = (file) => readFileSync(join(project, file), "utf8");

/** Tries the mutants of one script. Prints those that survive, and resolves with how many these are. */
function tryMutants(file, { playBoth, randomScripts }) {
  const random = randomScripts.find(({ script }) => script.source === scriptOf(file));
  const all = mutantsOf(read(file));
  for (const line of staleLines(file, all))
    console.log(`lua-same.mjs has a line that is not a mutant: ${line}`);
  const mutants = all.filter((mutant) => !changesNothing(file, mutant));
  const isNoticed = ({ source }) => {
    const mutated = scriptOf(file, (each) => (each === file ? source : read(each)));
    return Array.from({ length: plays }, (_, seed) => seed).some(
      (seed) => playBoth(random, seed, mutated).difference,
    );
  };
  const survivors = mutants.filter((mutant) => !isNoticed(mutant));
  for (const { line, from, to, source } of survivors) {
    const changed = source.split("\n")[line - 1].trim();
    console.log(`SURVIVED ${file}:${line}: ${from.trim()} → ${to.trim()}\n    ${changed}`);
  }
  const killed = mutants.length - survivors.length;
  const same = all.length - mutants.length;
  console.log(`${file}: ${killed} of ${mutants.length} noticed; ${same} are known to change nothing`);
  return survivors.length;
}

/**
 * Tries all mutants of the scripts whose path contains one of `parts`, or of all. Prints those that survive. Resolves
 * with the exit code: 1 if any survives.
 *
 * @param {string[]} parts
 */
export async function mutateScripts(parts) {
  const twins = {
    ...(await load("evidence/twins/play-both.ts")),
    ...(await load("evidence/twins/random-calls.ts")),
  };
  const chosen = luaFiles().filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)));
  const survived = chosen.map((file) => tryMutants(file, twins)).reduce((sum, count) => sum + count, 0);
  return survived > 0 ? 1 : 0;
}
