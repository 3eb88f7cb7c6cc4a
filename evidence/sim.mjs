// Simulates the library in virtual time: `node evidence/sim.mjs --minutes 5`; `--seed 123 --trace` repeats one
// seed. Prints counts and violations, and fails if an invariant is violated that no
// dropped assumption explains.
import { readFile, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { readArguments, refuse } from "../tools/arguments.mjs";
import { load, project } from "../tools/load.mjs";
import { bundleSimulator, simulateAll } from "./sim/processes.mjs";

const usage =
  "node evidence/sim.mjs --seed s [--trace] | --seeds n [--from s] [--write] | --minutes m  " +
  '[--without "bounded drift"]… [--work locks|sync|<a synchronizer>] [--mutant name] [--jobs n]';

process.exitCode = 1;
const { missing } = await load("evidence/sim/world/occurrences.ts");
const { assumptions, invariants } = await load("evidence/sim/world/invariants.ts");
const { themes } = await load("evidence/sim/world/themes.ts");
const { seed, seeds, minutes, from, without, work, traced, mutant, jobs, write } = readOptions();
const isOne = seed !== undefined;
const sharesFile = join(project, "evidence/sim/shares.json");
const shares = JSON.parse(await readFile(sharesFile, "utf8"));
const flags =
  (work ? ` --work ${work}` : "") +
  (mutant ? ` --mutant "${mutant}"` : "") +
  (without ?? []).map((assumption) => ` --without "${assumption}"`).join("");

const began = Date.now();
let progressAt = began;
let done = 0;
let virtual = 0;
/** By event: how often it occurred, and in how many seeds. */
const counts = new Map();
const seedsWith = new Map();
const violations = [];
const excused = new Map();

if (!isOne) console.log(`from seed ${from}\n`);
const bundle = await bundleSimulator({ mutant: await mutantOf(mutant) });
await simulateAll(orders(), record, { jobs: isOne ? 1 : jobs, bundle });
if (write) await writeShares();
report();

function* orders() {
  const end = minutes ? began + minutes * 60_000 : Number.POSITIVE_INFINITY;
  const [first, count] = isOne ? [seed, 1] : [from, seeds];
  for (let next = first; next < first + count && Date.now() < end; next += 1)
    yield { seed: next, without, work, traced };
}

/** The defect that is put into the library, to see what it does. */
async function mutantOf(name) {
  if (name === undefined) return undefined;
  const { mutants } = await load("evidence/sim/mutants/mutants.ts");
  return mutants.find((one) => one.name === name) ?? refuse(`There is no mutant "${name}".`, usage);
}

function record(simulation) {
  done += 1;
  virtual += simulation.length;
  for (const line of simulation.lines) console.log(line);
  for (const [what, times] of Object.entries(simulation.counts)) {
    counts.set(what, (counts.get(what) ?? 0) + times);
    seedsWith.set(what, (seedsWith.get(what) ?? 0) + 1);
  }
  // The first violation of a seed usually causes the others.
  const [first] = simulation.violations;
  if (first) {
    violations.push({ seed: simulation.seed, more: simulation.violations.length - 1, ...first });
    console.log(describe(violations.at(-1)));
  }
  for (const { invariant, without: missing } of simulation.excused) {
    for (const assumption of missing) {
      const pair = `${assumption} / ${invariant}`;
      const { times = 0, example = simulation.seed } = excused.get(pair) ?? {};
      excused.set(pair, { times: times + 1, example });
    }
  }
  if (Date.now() < progressAt + 15_000) return;
  progressAt = Date.now();
  console.log(
    `… ${done} seeds, ${counts.get("operations") ?? 0} calls, ${violations.length} of them with violations`,
  );
}

function report() {
  const seconds = (Date.now() - began) / 1_000;
  const calls = counts.get("operations") ?? 0;
  console.log(
    `\n${[...counts]
      .sort()
      .map(([what, times]) => `${what}: ${times} in ${seedsWith.get(what)} seeds`)
      .join("\n")}`,
  );
  printExcused();
  const absent = isOne ? [] : neverOccurred();
  console.log(
    `\n${done} seeds, ${calls} calls, ${counts.get("requests") ?? 0} requests to endpoints, ` +
      `${(virtual / 3_600_000).toFixed(1)} h of virtual time in ${seconds.toFixed(0)} s: ` +
      `${Math.round(calls / seconds)} calls a second`,
  );
  for (const violation of violations) console.log(describe(violation));
  if (absent.length > 0) console.log(`never occurred: ${absent.join(", ")}`);
  const passed = violations.length === 0 && absent.length === 0 && done > 0;
  console.log(passed ? "All hold." : "SOMETHING DOES NOT HOLD.");
  process.exitCode = passed ? 0 : 1;
}

function printExcused() {
  if (excused.size > 0) console.log("\nbroken because an assumption was dropped:");
  for (const [pair, { times, example }] of [...excused].sort()) {
    console.log(`  ${pair}: ${times}, e.g. seed ${example}`);
  }
}

/** What should have occurred in so many seeds. Of many, also prints the violations that were allowed but did not occur. */
function neverOccurred() {
  const dropped = without ?? (done < 1_000 ? [] : assumptions);
  const allowed = Object.entries(invariants).flatMap(([invariant, needs]) =>
    needs.filter((need) => dropped.includes(need)).map((need) => `${need} / ${invariant}`),
  );
  for (const pair of allowed) if (!excused.has(pair)) console.log(`note: allowed but never seen: ${pair}`);
  // With a choice of assumptions or work, not everything can occur.
  if (without || work) return [];
  return write ? Object.keys(shares).filter((what) => !counts.has(what)) : missing(done, counts, shares);
}

/** Records in which share of the seeds each event occurs. */
async function writeShares() {
  if (without || work || done < 1_000) refuse("--write needs 1 000 seeds, of every kind of work.", usage);
  const rounded = (what) => Number(((seedsWith.get(what) ?? 0) / done).toPrecision(2));
  const rows = Object.keys(shares).map((what) => [what, rounded(what)]);
  await writeFile(sharesFile, `${JSON.stringify(Object.fromEntries(rows), null, 2)}\n`);
}

function describe({ seed: culprit, more, at, invariant, detail }) {
  const rest = more > 0 ? ` (and ${more} more)` : "";
  const repeat = `node evidence/sim.mjs --seed ${culprit} --trace${flags}`;
  return `VIOLATED ${invariant} at ${at.toFixed()}: ${detail}${rest}\n  ${repeat}`;
}

function readOptions() {
  const text = { type: "string" };
  const flag = { type: "boolean" };
  const numbers = { seed: text, seeds: text, minutes: text, from: text, jobs: text };
  const texts = { ...numbers, work: text, mutant: text };
  const flags = { trace: flag, write: flag };
  const values = readArguments({ ...texts, ...flags, without: { ...text, multiple: true } }, usage);
  const number = (given, otherwise) => (given === undefined ? otherwise : Number(given));
  const options = {
    seed: number(values.seed),
    seeds: number(values.seeds, values.minutes === undefined ? 1_000 : Number.POSITIVE_INFINITY),
    minutes: number(values.minutes),
    from: number(values.from, Math.floor(Math.random() * 2 ** 31)),
    jobs: number(values.jobs, availableParallelism()),
    without: values.without,
    work: values.work,
    traced: values.trace ?? false,
    write: values.write ?? false,
    mutant: values.mutant,
  };
  const { without, work } = options;
  const unknown = without?.find((assumption) => !assumptions.includes(assumption));
  if (unknown) refuse(`There is no assumption "${unknown}", but: ${assumptions.join(", ")}.`, usage);
  if (work && !themes.includes(work)) refuse(`--work is one of: ${themes.join(", ")}.`, usage);
  const fits = [options.seed ?? 1, options.from].every(Number.isSafeInteger) && options.jobs >= 1;
  if (!fits || !(options.seeds >= 1) || options.minutes <= 0)
    refuse("--seed and --from take whole numbers, --seeds, --minutes and --jobs numbers above 0.", usage);
  return options;
}
