// The simulator as processes of their own: bundled, with or without a mutant, and asked for one seed after another.
import { fork } from "node:child_process";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import process from "node:process";
import { build } from "esbuild";
import { project } from "./load.mjs";

const directory = join(project, "node_modules", ".cache", "simulator");

/**
 * Bundles the simulator and the library in it. A mutant's patches are applied on the way: no source knows of them.
 *
 * @param {{ mutant?: import("../test/robustness/sim/mutants.ts").Mutant }} [options]
 * @returns {Promise<{ file: string, remove: () => Promise<void> }>}
 * @throws when one of the mutant's patches does not match exactly once
 */
export async function bundleSimulator({ mutant } = {}) {
  const name = (mutant?.name ?? "sound").replace(/\W+/g, "-");
  const file = join(directory, `${name}-${process.pid}.mjs`);
  await mkdir(directory, { recursive: true });
  await build({
    absWorkingDir: project,
    entryPoints: ["test/robustness/sim/main.ts"],
    outfile: file,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "silent",
    // The Lua machine is CommonJS and asks for Node's modules by `require`.
    banner: {
      js: 'import { createRequire } from "node:module";\nconst require = createRequire(import.meta.url);',
    },
    plugins: mutant ? [mutation(mutant)] : [],
  });
  return { file, remove: () => rm(file, { force: true }) };
}

function mutation({ name, patches }) {
  return {
    name: "mutation",
    setup(building) {
      const applied = new Set();
      building.onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, async ({ path }) => {
        const file = relative(join(project, "src"), path).replaceAll("\\", "/");
        const mine = patches.filter((patch) => patch.file === file);
        if (mine.length === 0) return undefined;
        let contents = await readFile(path, "utf8");
        for (const patch of mine) {
          const { find, replace } = patch;
          const pieces = contents.split(find);
          if (pieces.length !== 2) {
            throw new Error(
              `mutant "${name}" no longer applies: found ${pieces.length - 1} times in src/${file}:\n${find}`,
            );
          }
          contents = pieces.join(replace);
          applied.add(patch);
        }
        return { contents, loader: "ts" };
      });
      building.onEnd(({ errors }) => {
        const idle = patches.find((patch) => !applied.has(patch));
        if (!idle || errors.length > 0) return undefined;
        return { errors: [{ text: `mutant "${name}" no longer applies: nothing loads src/${idle.file}` }] };
      });
    },
  };
}

/**
 * A process that simulates one seed after another, and a new one where that hangs.
 *
 * @param {string} file the bundle
 * @param {number} [patience] ms of real time after which a simulation counts as hanging
 */
export function startSimulator(file, patience = 60_000) {
  let child;

  /** @returns {Promise<import("../test/robustness/sim/main.ts").Report>} */
  function simulate(order) {
    child ??= fork(file, { execArgv: [], stdio: ["ignore", "inherit", "inherit", "ipc"] });
    const worker = child;
    return new Promise((resolve) => {
      const settle = (report) => {
        clearTimeout(timer);
        worker.off("message", settle);
        worker.off("exit", exited);
        resolve(report);
      };
      const giveUp = (detail) => {
        child = undefined;
        worker.kill("SIGKILL");
        const violation = { invariant: "calls end", at: 0, detail, without: [] };
        settle({
          ...order,
          dropped: [],
          violations: [violation],
          excused: [],
          counts: {},
          length: 0,
          lines: [],
        });
      };
      const exited = (code, signal) => giveUp(`the simulation ended its process with ${signal ?? code}`);
      // From outside: a loop that never pauses leaves its own process no time to notice.
      const timer = setTimeout(() => giveUp(`hangs: no end after ${patience / 1_000} s`), patience);
      worker.once("message", settle);
      worker.once("exit", exited);
      worker.send(order);
    });
  }

  return { simulate, end: () => child?.kill("SIGKILL") };
}

/**
 * Runs simulations in several processes at once.
 *
 * @param {Iterable<object>} orders what to simulate, one after another; asked for only as fast as it is done
 * @param {(report: import("../test/robustness/sim/main.ts").Report) => void} hear
 */
export async function simulateAll(orders, hear, { jobs = 2, patience, bundle } = {}) {
  const { file, remove } = bundle ?? (await bundleSimulator());
  const queue = orders[Symbol.iterator]();
  const work = async () => {
    const simulator = startSimulator(file, patience);
    try {
      for (let next = queue.next(); !next.done; next = queue.next())
        hear(await simulator.simulate(next.value));
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
