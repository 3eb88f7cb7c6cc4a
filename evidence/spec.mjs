// `node evidence/spec.mjs` checks the model of the lock, evidence/spec/redlock.qnt (docs/internals/evidence.md): its scenes, what must hold in
// random simulations, and what must fail without an assumption.
import { execFile } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { readArguments } from "../tools/arguments.mjs";
import { project } from "../tools/load.mjs";
import { npmCi } from "../tools/npm-ci.mjs";

const usage = `node evidence/spec.mjs [--seed <n>] [--samples <factor>]

  --seed <n>           of the random simulations; default 1
  --samples <factor>   so many times as many simulations; default 1`;

/**
 * Simulations of one world, by default of 30 steps. `fails`: some simulation must break the invariant. `reaches`: each
 * must be true at some time of some simulation, so that the invariants are about something.
 */
const simulations = [
  {
    what: "exclusion, and fences in the order of the locks; memory is lost, requests repeat",
    world: "fenced",
    invariants: ["exclusion", "fencesIncrease", "fencesInOrder"],
    reaches: ["bothHeld", "raised", "extended", "returned"],
    samples: 1500,
  },
  {
    what: "exclusion without fencing",
    world: "plain",
    invariants: ["exclusion"],
    reaches: ["bothHeld", "extended", "returned"],
    samples: 1000,
  },
  {
    what: "exclusion where endpoints return at once after a loss of memory",
    world: "noAbsence",
    invariants: ["exclusion"],
    samples: 3000,
    fails: true,
  },
  {
    what: "fences increase where no clock is right; memory is kept",
    world: "wrongClocks",
    invariants: ["fencesIncrease"],
    reaches: ["bothHeld", "raised", "extended", "clockless"],
    samples: 1500,
  },
  {
    what: "exclusion where no clock is right",
    world: "wrongClocks",
    invariants: ["exclusion"],
    samples: 1000,
    fails: true,
  },
  {
    what: "fences increase where memory is lost and no clock is right",
    world: "lossAndWrongClocks",
    invariants: ["fencesIncrease"],
    samples: 3000,
    fails: true,
  },
  {
    what: "late writes are refused",
    world: "fencedOnce",
    step: "work",
    invariants: ["lateWritesRefused"],
    reaches: ["bothWrote"],
    samples: 600,
    steps: 50,
  },
  {
    what: "late writes are refused, without fences",
    world: "plainOnce",
    step: "work",
    invariants: ["lateWritesRefused"],
    samples: 3000,
    steps: 50,
    fails: true,
  },
  {
    what: "what has ended is gone once its requests were executed",
    world: "fencedOnce",
    invariants: ["endedIsGone"],
    reaches: ["bothHeld"],
    samples: 1000,
  },
  {
    what: "what has ended is gone, without tombstones",
    world: "plainOnce",
    invariants: ["endedIsGone"],
    samples: 1000,
    fails: true,
  },
];

npmCi("evidence");
const model = join(project, "evidence/spec/redlock.qnt");
const cli = join(project, "evidence/node_modules/@informalsystems/quint/dist/src/cli.js");

/** Runs Quint. Its own simulator needs no download. @returns what it prints, and whether it succeeded */
function quint(command, options) {
  const args = [cli, command, ...options, model];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: project }, (error, stdout, stderr) =>
      resolve({ text: stdout + stderr, isOk: !error }),
    );
  });
}

// Quint counts its random numbers from the seed on, so the simulations of neighbours would be the same.
const simulator = (seed) => ["--backend", "typescript", "--seed", String(seed * 1e9)];

async function checkTypes() {
  const { text, isOk } = await quint("typecheck", []);
  return { what: "types", expected: "holds", found: isOk ? "holds" : "fails", text };
}

async function runScenes(seed) {
  const { text, isOk } = await quint("test", simulator(seed));
  const passed = Number(/(\d+) passing/.exec(text)?.[1] ?? 0);
  const found = isOk && passed > 0 ? "holds" : "fails";
  return { what: `the ${passed} scenes end as they say`, expected: "holds", found, text };
}

async function simulate(simulation, { seed, factor }) {
  const { what, world, step = "step", steps = 30 } = simulation;
  const { invariants, reaches = ["bothHeld"], fails = false } = simulation;
  const samples = Math.ceil(simulation.samples * factor);
  const { text, isOk } = await quint("run", [
    ...simulator(seed),
    ...["--init", world, "--step", step, "--max-samples", String(samples), "--max-steps", String(steps)],
    ...["--invariants", ...invariants, "--witnesses", ...reaches],
    ...["--verbosity", "1"],
  ]);
  const isViolated = !isOk && text.includes("[violation]");
  const witnesses = [...text.matchAll(/(\w+) was witnessed in (\d+) trace.* of (\d+) explored/g)];
  const unreached = fails
    ? []
    : reaches.filter((name) => !witnesses.some(([, n, count]) => n === name && count > 0));
  let found = isViolated ? "fails" : isOk ? "holds" : "error";
  if (unreached.length > 0) found = `${unreached} never reached`;
  const reached = witnesses.map(([, name, count, all]) => `${name} ${((100 * count) / all).toFixed(1)} %`);
  return {
    what,
    expected: fails ? "fails" : "holds",
    found,
    extent: `${witnesses[0]?.[3] ?? 0} × ${steps}`,
    reached: fails ? "" : reached.join(", "),
    text,
  };
}

/** Runs tasks, two at a time, and prints each result. @returns whether each was as expected */
async function runAll(tasks) {
  const waiting = [...tasks];
  let isGood = true;
  const work = async () => {
    for (let task = waiting.shift(); task; task = waiting.shift()) {
      const start = performance.now();
      const { what, expected, found, extent = "", reached = "", text } = await task();
      const seconds = ((performance.now() - start) / 1000).toFixed(1);
      const isExpected = found === expected;
      isGood &&= isExpected;
      const must = expected === "holds" ? "must hold" : "must fail";
      const cells = [isExpected ? "ok" : "WRONG", `${must}, ${found}`.padEnd(17), extent.padStart(9)];
      console.log(
        `${cells.join("  ")}  ${seconds.padStart(5)} s  ${what}${reached && ` (reached: ${reached})`}`,
      );
      if (!isExpected) console.log(text.trimEnd());
    }
  };
  await Promise.all([work(), work()]);
  return isGood;
}

const { seed = "1", samples = "1" } = readArguments(
  { seed: { type: "string" }, samples: { type: "string" } },
  usage,
);
const tasks = simulations.map((simulation) => () => simulate(simulation, { seed, factor: Number(samples) }));
const isGood = await runAll([checkTypes, () => runScenes(seed), ...tasks]);
process.exitCode = isGood ? 0 : 1;
