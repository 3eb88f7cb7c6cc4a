// Runs the simulator in processes of its own: bundled, with or without a mutant, for one seed after another.
import { fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join, relative } from "node:path";
import { bundleFile, project } from "../../tools/load.mjs";
import { applyPatch, pathOf } from "./mutants/patch.mjs";

/**
 * Bundles the simulator with the library. A mutant's patches are applied to the bundle, never to the sources.
 *
 * @param {{ mutant?: import("./mutants/mutants.ts").Mutant }} [options]
 * @returns {Promise<{ file: string, remove: () => Promise<void> }>}
 * @throws when one of the mutant's patches no longer applies
 */
export async function bundleSimulator({ mutant } = {}) {
  const file = await bundleFile("evidence/sim/main.ts", {
    name: `simulator, ${mutant?.name ?? "sound"}`,
    sourcemap: false,
    plugins: mutant ? [mutation(mutant)] : [],
  });
  return { file, remove: () => rm(file, { force: true }) };
}

function mutation({ name, patches }) {
  return {
    name: "mutation",
    setup(building) {
      const applied = new Set();
      const patched = (path) => {
        let contents = readFileSync(join(project, path), "utf8");
        for (const patch of patches.filter(({ file }) => pathOf(file) === path)) {
          contents = applyPatch(contents, patch);
          applied.add(patch);
        }
        return contents;
      };
      building.onLoad({ filter: /[\\/](src|sim)[\\/].*\.ts$/ }, ({ path }) => {
        const file = relative(project, path).replaceAll("\\", "/");
        return { contents: patched(file), loader: "ts" };
      });
      building.onEnd(({ errors }) => {
        const unused = patches.find((patch) => !applied.has(patch));
        if (!unused || errors.length > 0) return undefined;
        return {
          errors: [{ text: `mutant "${name}" no longer applies: nothing loads ${pathOf(unused.file)}` }],
        };
      });
    },
  };
}

/**
 * Less optimization and garbage collection in threads beside the simulation: most simulations end before they pay. It
 * takes a sixth less CPU for 600 seeds.
 */
const execArgv = [
  "--always-sparkplug",
  "--max-inlined-bytecode-size-cumulative=300",
  "--single-threaded-gc",
  "--min-semi-space-size=32",
  "--max-semi-space-size=32",
];

/** So many times its time limit a simulation may take by the clock, on a machine with other work. */
const mostWaiting = 20;

/** ms of CPU that a process has used; undefined where only the process itself knows. */
function cpuOf(pid) {
  try {
    // The fields after the name, which may contain spaces. The kernel counts in hundredths of a second.
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
    return 10 * (Number(fields[11]) + Number(fields[12]));
  } catch {
    return undefined;
  }
}

/**
 * A process that simulates one seed after another. It is replaced by a new one when a simulation hangs or crashes.
 *
 * @param {string} file the bundle
 * @param {number} [timeLimit] ms of CPU after which a simulation counts as hanging, default 60 000; of real time where
 *   the system does not tell the CPU time of another process
 */
export function startSimulator(file, timeLimit = 60_000) {
  let child;

  /** @returns {Promise<import("./simulate.ts").Simulation>} */
  function simulate(order) {
    child ??= fork(file, { execArgv, stdio: ["ignore", "inherit", "inherit", "ipc"] });
    const worker = child;
    return new Promise((resolve) => {
      const finish = (report) => {
        clearTimeout(timer);
        worker.off("message", finish);
        worker.off("exit", exited);
        resolve(report);
      };
      const giveUp = (detail) => {
        child = undefined;
        worker.kill("SIGKILL");
        const violations = [{ invariant: "calls end", at: 0, detail, without: [] }];
        finish({ seed: order.seed, dropped: [], violations, excused: [], counts: {}, length: 0, lines: [] });
      };
      const exited = (code, signal) => giveUp(`the simulation ended its process with ${signal ?? code}`);
      const began = Date.now();
      const cpuBefore = cpuOf(worker.pid) ?? 0;
      // Checked here and not in the worker, whose timers do not fire during an endless loop.
      const checkTime = () => {
        const waited = Date.now() - began;
        const used = (cpuOf(worker.pid) ?? Number.POSITIVE_INFINITY) - cpuBefore;
        if (used >= timeLimit || waited >= mostWaiting * timeLimit)
          giveUp(`hangs: no end after ${timeLimit / 1_000} s`);
        else timer = setTimeout(checkTime, Math.max(1_000, timeLimit - used));
      };
      let timer = setTimeout(checkTime, timeLimit);
      worker.once("message", finish);
      worker.once("exit", exited);
      worker.send(order);
    });
  }

  return { simulate, end: () => child?.kill("SIGKILL") };
}

/**
 * Runs simulations in several processes at once.
 *
 * @param {Iterable<object>} orders the simulations; the next one is taken when a process is free
 * @param {(report: import("./simulate.ts").Simulation) => void} onReport called for each simulation
 * @param {{ jobs?: number, timeLimit?: number, bundle?: { file: string, remove: () => Promise<void> } }} [options]
 *   `jobs`: number of processes, default one for each core; `timeLimit`: see {@link startSimulator}; `bundle`: default a new one
 */
export async function simulateAll(
  orders,
  onReport,
  { jobs = availableParallelism(), timeLimit, bundle } = {},
) {
  const { file, remove } = bundle ?? (await bundleSimulator());
  const queue = orders[Symbol.iterator]();
  const work = async () => {
    const simulator = startSimulator(file, timeLimit);
    try {
      for (let next = queue.next(); !next.done; next = queue.next())
        onReport(await simulator.simulate(next.value));
    } finally {
      simulator.end();
    }
  };
  try {
    await Promise.all(Array.from({ length: jobs }, work));
  } finally {
    await remove();
  }
}

/**
 * Puts a mutant into the library, and simulates seeds until one notices it.
 *
 * @param {import("./mutants/mutant.ts").Mutant} mutant
 * @param {Iterable<number>} seeds
 * @param {number} timeLimit ms of CPU after which a simulation counts as hanging
 * @returns {Promise<{ seed?: number, invariant?: string, others: Map<string, number> }>} the seed and the invariant that noticed
 *   it; and the other invariants that were violated before, with their first seeds
 */
export async function hunt(mutant, seeds, timeLimit) {
  const { file, remove } = await bundleSimulator({ mutant });
  const simulator = startSimulator(file, timeLimit);
  const others = new Map();
  try {
    for (const seed of seeds) {
      const { violations } = await simulator.simulate({ seed });
      const found = violations.find(({ invariant }) => mutant.noticedBy.includes(invariant));
      if (found) return { seed, invariant: found.invariant, others };
      for (const { invariant } of violations) if (!others.has(invariant)) others.set(invariant, seed);
    }
    return { others };
  } finally {
    simulator.end();
    await remove();
  }
}
