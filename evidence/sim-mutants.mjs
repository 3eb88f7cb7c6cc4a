// Checks that the simulator catches known bugs: `node evidence/sim-mutants.mjs`. Puts them into the library one at a time, and counts
// the seeds until the simulator notices each. Fails if it misses one: it would then miss other defects as well.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { readArguments, refuse } from "../tools/arguments.mjs";
import { load, project } from "../tools/load.mjs";
import { hunt, simulateAll } from "./sim/processes.mjs";

const usage =
  'node evidence/sim-mutants.mjs [--only "part of a name"]… [--seeds 4000] [--jobs 2] [--write]\n' +
  '  node evidence/sim-mutants.mjs --list [--only "part of a name"]…';
const caughtFile = join(project, "evidence/sim/mutants/caught.json");

process.exitCode = 1;
const { mutants } = await load("evidence/sim/mutants/mutants.ts");
const { concerns } = await load("evidence/sim/mutants/mutant.ts");
const { themeOf } = await load("evidence/sim/world/themes.ts");
const { only, limit, jobs, write, list } = readOptions();
const chosen = mutants.filter(({ name }) => !only || only.some((part) => name.includes(part)));
if (chosen.length === 0) refuse("No mutant is called that.", usage);
if (list) {
  await listMutants();
  process.exit(0);
}

console.log(`${chosen.length} mutants, up to ${limit} seeds each\n`);
const queue = chosen.values();
const found = new Map();
await Promise.all(Array.from({ length: jobs }, tryMutants));

console.log("\nThe sound library at these seeds:");
const alarms = [];
await simulateAll(
  [...found.values()].map(({ seed }) => ({ seed })),
  ({ seed, violations }) => alarms.push(...violations.map((v) => ({ seed, ...v }))),
  { jobs },
);
for (const { seed, invariant, detail } of alarms) {
  console.log(`  FALSE ALARM ${invariant}: ${detail}\n    node evidence/sim.mjs --seed ${seed} --trace`);
}
if (alarms.length === 0) console.log("  no violation");

const missed = chosen.filter(({ name }) => !found.has(name));
console.log(`\n${found.size} of ${chosen.length} mutants noticed.`);
for (const { name } of missed) console.log(`NOT NOTICED within ${limit} seeds: ${name}`);
if (write) await record();
process.exitCode = missed.length + alarms.length > 0 ? 1 : 0;

/** Prints what each mutant breaks, and what has noticed it. Runs nothing. */
async function listMutants() {
  const caught = JSON.parse(await readFile(caughtFile, "utf8"));
  for (const { name, breaks } of chosen) {
    const { seed, invariant } = caught[name];
    console.log(`${name}: ${breaks}\n  noticed by "${invariant}" at seed ${seed}`);
  }
  console.log(`\n${chosen.length} mutants`);
}

/** Tries mutants from the queue until it is empty. */
async function tryMutants() {
  for (const mutant of queue) {
    const began = Date.now();
    const seeds = Array.from({ length: limit }, (_, index) => index + 1);
    const concerned = seeds.filter((each) => concerns(mutant, themeOf(each)));
    const { seed, invariant, others } = await hunt(mutant, concerned, 20_000);
    const took = `${((Date.now() - began) / 1_000).toFixed(1)} s`;
    if (seed) found.set(mutant.name, { seed, invariant });
    const by = seed ? `${String(seed).padStart(5)}  ${invariant}` : "    –  NOT NOTICED";
    const also = [...others].map(([other, first]) => `, also ${other} (${first})`).join("");
    console.log(`${mutant.name.padEnd(46)} ${by.padEnd(34)} ${took}${also}`);
  }
}

/** Stores the seeds for the test that repeats them; those of other mutants stay. */
async function record() {
  const known = JSON.parse(await readFile(caughtFile, "utf8"));
  const rows = mutants.flatMap(({ name }) => {
    const { seed, invariant } = found.get(name) ?? known[name] ?? {};
    const [key, broken] = [name, invariant].map((text) => JSON.stringify(text));
    return seed ? `  ${key}: { "seed": ${seed}, "invariant": ${broken} }` : [];
  });
  // A line each, so that a diff shows which have changed.
  await writeFile(caughtFile, `{\n${rows.join(",\n")}\n}\n`);
}

function readOptions() {
  const text = { type: "string" };
  const flag = { type: "boolean" };
  const options = { only: { ...text, multiple: true }, seeds: text, jobs: text, write: flag, list: flag };
  const values = readArguments(options, usage);
  const [limit, jobs] = [Number(values.seeds ?? 4_000), Number(values.jobs ?? 2)];
  if (!(limit >= 1 && jobs >= 1)) refuse("--seeds and --jobs take numbers from 1 on.", usage);
  return { ...values, limit, jobs };
}
