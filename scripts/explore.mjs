// Explores every schedule of small worlds: `npm run explore`. Prints how many there are, and fails if an invariant is
// violated in one of them; `--scenario X --schedule "…"` replays it. With `--mutants`, checks that known defects are
// found within their bounds.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { readArguments, refuse } from "./arguments.mjs";
import { load, project } from "./load.mjs";
import { bundleSimulator, startSimulator } from "./simulator.mjs";

const usage =
  'npm run explore -- [--scenario "part of a name"]… [--bound d | --test] [--jobs 2] [--mutant "part of a name"]\n' +
  '  npm run explore -- --scenario "name" --schedule "4:late:p0.3,…" [--mutant "name"]\n' +
  '  npm run explore -- --mutants [--mutant "part of a name"]… [--jobs 2] [--most schedules] [--write]\n' +
  '  npm run explore -- --list [--scenario "part of a name"]…';

const entry = "test/robustness/explore/main.ts";
const foundFile = join(project, "test/robustness/explore/found.json");

process.exitCode = 1;
const { given, jobs, most } = readOptions();
const { scenarios } = await load("test/robustness/explore/scenarios.ts");
const { mutants } = await load("test/robustness/explore/mutants.ts");
const chosen = scenarios.filter(({ name }) => matches(name, given.scenario));
const mutated = mutants.filter(({ name }) =>
  given.mutants || given.mutant ? matches(name, given.mutant) : false,
);
if (chosen.length === 0) refuse("No scenario is called that.", usage);
if (given.mutant && mutated.length === 0) refuse("No mutant is called that.", usage);

if (given.list) await list();
else if (given.schedule !== undefined) await replaySchedule();
else if (given.mutants) await findMutants();
else await exploreAll();

/** Prints the worlds with their bounds, and the mutants that each shows. Runs nothing. */
async function list() {
  const found = Object.entries(JSON.parse(await readFile(foundFile, "utf8")));
  for (const { name, about, bounds } of chosen) {
    console.log(`${name}: ${about}; deviations: ${bounds.test} in npm test, ${bounds.long} at most`);
    for (const [mutant, [scenario, bound]] of found) {
      if (scenario === name) console.log(`  shows "${mutant}" with ${bound}`);
    }
  }
  console.log(`\n${chosen.length} worlds`);
  await listElsewhere();
  process.exitCode = 0;
}

/** Prints the mutants that no world shows, and why. */
async function listElsewhere() {
  const { elsewhere } = await load("test/robustness/explore/elsewhere.ts");
  for (const { why, mutants: names } of elsewhere) console.log(`elsewhere, ${names.length}: ${why}`);
}

/** Prints every step of one schedule. */
async function replaySchedule() {
  const { file, remove } = await bundleSimulator({ entry, mutant: mutated[0] });
  const explorer = startSimulator(file);
  const scenario = scenarios.find(({ name }) => name === given.scenario?.[0]) ?? chosen[0];
  const { lines, violations } = await explorer.simulate({
    scenario: scenario.name,
    schedule: given.schedule,
  });
  for (const line of lines) console.log(line);
  for (const { invariant, detail } of violations) console.log(`VIOLATED ${invariant}: ${detail}`);
  explorer.end();
  await remove();
  process.exitCode = violations.length > 0 ? 1 : 0;
}

/** Explores the scenarios, in several processes. */
async function exploreAll() {
  const [mutant] = mutated;
  const { file, remove } = await bundleSimulator({ entry, mutant });
  const reports = [];
  console.log(heading());
  const small = startSimulator(file, 2 ** 31 - 1);
  await inParallel(chosen, async (scenario) => {
    // A process of its own for a large search, which takes much memory.
    const explorer = given.test ? small : startSimulator(file, 2 ** 31 - 1);
    const bound = Number(given.bound ?? scenario.bounds[given.test ? "test" : "long"]);
    const report = await explorer.simulate({ scenario: scenario.name, bound, most });
    if (explorer !== small) explorer.end();
    reports.push(report);
    console.log(row(report));
    for (const violation of report.violations) console.log(describe(report, violation, mutant));
  });
  small.end();
  await remove();
  const sum = (what) => reports.reduce((total, report) => total + report[what], 0);
  console.log(
    `\n${reports.length} scenarios, ${sum("schedules")} schedules, ${sum("states")} states, ` +
      `${(sum("cpu") / 1_000).toFixed(1)} s of CPU`,
  );
  const partial = reports.filter(({ isWhole, violations }) => !isWhole && violations.length === 0);
  for (const { scenario } of partial) console.log(`NOT WHOLE: ${scenario}`);
  const passed = reports.every(({ violations }) => violations.length === 0) && partial.length === 0;
  console.log(passed ? "All hold." : "SOMETHING DOES NOT HOLD.");
  process.exitCode = passed ? 0 : 1;
}

/** Looks for each mutant in each scenario, with a growing bound, until one shows it. */
async function findMutants() {
  const { elsewhere } = await load("test/robustness/explore/elsewhere.ts");
  const before = JSON.parse(await readFile(foundFile, "utf8").catch(() => "{}"));
  const found = new Map();
  const wanted = mutated.filter(({ name }) => !elsewhere.some((other) => other.mutants.includes(name)));
  await inParallel(wanted, async (mutant) => {
    const began = Date.now();
    const report = await find(mutant, before[mutant.name]);
    const took = `${((Date.now() - began) / 1_000).toFixed(1)} s`;
    if (report) found.set(mutant.name, report);
    const where = report ? `${report.scenario}, bound ${report.bound}: ${report.invariant}` : "NOT FOUND";
    console.log(`${mutant.name.padEnd(48)} ${where} (${took})`);
  });
  console.log(`\n${found.size} of ${wanted.length} mutants found.`);
  await listElsewhere();
  if (given.write) {
    const rows = mutants.flatMap(({ name }) => {
      const report = found.get(name);
      const [scenario, bound] = report ? [report.scenario, report.bound] : (before[name] ?? []);
      return scenario ? [`  ${JSON.stringify(name)}: [${JSON.stringify(scenario)}, ${bound}]`] : [];
    });
    await writeFile(foundFile, `{\n${rows.join(",\n")}\n}\n`);
  }
  process.exitCode = found.size === wanted.length ? 0 : 1;
}

/** The scenario and the least bound that show a mutant: first those that did so before. */
async function find(mutant, before) {
  const { file, remove } = await bundleSimulator({ entry, mutant });
  const explorer = startSimulator(file, 600_000);
  const highest = Math.max(...chosen.map(({ bounds }) => bounds.long));
  try {
    for (let bound = 0; bound <= highest; bound += 1) {
      for (const { name, bounds } of chosen) {
        if (bound > bounds.long || (before && (name !== before[0] || bound !== before[1]))) continue;
        const order = { scenario: name, bound, wanted: mutant.noticedBy, most };
        const { violations } = await explorer.simulate(order);
        const violation = violations.find(({ invariant }) => mutant.noticedBy.includes(invariant));
        if (!violation) continue;
        const { invariant, spent } = violation;
        return { scenario: name, bound: spent, invariant };
      }
    }
    return before ? await find(mutant, undefined) : undefined;
  } finally {
    explorer.end();
    await remove();
  }
}

async function inParallel(items, work) {
  const queue = items.values();
  const worker = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: jobs }, worker));
}

function heading() {
  return `${"scenario".padEnd(36)} deviations  schedules     states  longest      CPU`;
}

function row({ scenario, bound, schedules, states, depth, cpu }) {
  const columns = [bound, schedules, states, depth].map((number, index) =>
    String(number).padStart([10, 10, 10, 8][index]),
  );
  return `${scenario.padEnd(36)} ${columns.join(" ")} ${(cpu / 1_000).toFixed(1).padStart(6)} s`;
}

function describe({ scenario }, { at, invariant, detail, schedule }, mutant) {
  const flags = mutant ? ` --mutant "${mutant.name}"` : "";
  const replay = `npm run explore -- --scenario "${scenario}" --schedule "${schedule}"${flags}`;
  return `VIOLATED ${invariant} at ${at.toFixed()}: ${detail}\n  ${replay}`;
}

function matches(name, parts) {
  return !parts || parts.some((part) => name.includes(part));
}

function readOptions() {
  const text = { type: "string" };
  const flag = { type: "boolean" };
  const options = {
    scenario: { ...text, multiple: true },
    mutant: { ...text, multiple: true },
    bound: text,
    schedule: text,
    jobs: text,
    most: text,
    mutants: flag,
    test: flag,
    write: flag,
    list: flag,
  };
  const values = readArguments(options, usage);
  const jobs = Number(values.jobs ?? 2);
  const most = values.most === undefined ? undefined : Number(values.most);
  if (!(jobs >= 1)) refuse("--jobs takes a number from 1 on.", usage);
  if (!(Number(values.bound ?? 0) >= 0)) refuse("--bound takes a number of deviations.", usage);
  if (!((most ?? 1) >= 1)) refuse("--most takes a number of schedules.", usage);
  // The small bounds are explored by one process, which takes one order at a time.
  return { given: values, jobs: values.test ? 1 : jobs, most };
}
