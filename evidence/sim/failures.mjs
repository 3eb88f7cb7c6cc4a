// What a failing simulation leaves behind: its picture, cut down, and the smallest simulation that fails in the same way.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import process from "node:process";
import { pictureScript } from "../../tools/draw.mjs";
import { load, project } from "../../tools/load.mjs";
import { startSimulator } from "./processes.mjs";

/** Where pictures are written by default: it is never committed. */
export const cache = join(project, "node_modules", ".cache", "sim");

/** ms of CPU after which a smaller simulation counts as hanging. */
const timeLimit = 5_000;

let loaded;

/** All that is bundled for this: at once, because Ctrl+C ends esbuild's process, too. */
function tools() {
  loaded ??= loadTools();
  return loaded;
}

async function loadTools() {
  const { cutDown } = await load("evidence/sim/cut-down.ts");
  const { shrink } = await load("evidence/sim/shrink.ts");
  const { pictureHtml } = await load("playground/picture/index.ts");
  return { cutDown, shrink, pictureHtml, script: await pictureScript() };
}

/** The path as one would type it in the project's folder. */
const shown = (file) => relative(process.cwd(), file) || file;

/**
 * Simulates once more, and writes the picture.
 *
 * @param {string} bundle the simulator
 * @param {object} order what to simulate
 * @param {{ file: string, whole?: boolean }} target `whole`: not cut down to what the violation is about
 * @returns {Promise<import("./main.ts").Report>}
 */
export async function writePicture(bundle, order, { file, whole = false }) {
  const { cutDown, pictureHtml, script } = await tools();
  const simulator = startSimulator(bundle);
  try {
    const report = await simulator.simulate({ ...order, recorded: true });
    if (!report.timeline) {
      console.log(`no picture of seed ${order.seed}: ${report.violations[0]?.detail}`);
      return report;
    }
    const timeline = whole ? report.timeline : cutDown(report.timeline);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, pictureHtml(timeline, script));
    console.log(`picture of seed ${order.seed}: ${shown(file)}`);
    return report;
  } finally {
    simulator.end();
  }
}

/** The simulation has no end, so that nothing is known of it. */
export class NothingToShrink extends Error {}

/**
 * Finds the smallest simulation that fails in the same way, and prints it. Ctrl+C ends the search with the best so far.
 *
 * @param {string} bundle the simulator
 * @param {object} order the failing simulation
 * @param {{ limit: number, log?: (line: string) => void }} options `limit`: ms
 * @returns {Promise<{ failing: object, invariant: string, tries: number, seconds: number, isComplete: boolean }>}
 * @throws NothingToShrink
 */
export async function shrinkFailure(bundle, order, { limit, log = console.log }) {
  const { shrink } = await tools();
  const simulator = startSimulator(bundle, timeLimit);
  const began = Date.now();
  let interrupted = false;
  const interrupt = () => {
    interrupted = true;
  };
  process.once("SIGINT", interrupt);
  try {
    const { violations, scenario, dropped } = await simulator.simulate(order);
    const invariant = violations[0]?.invariant;
    if (!scenario) throw new NothingToShrink(`seed ${order.seed}: ${violations[0]?.detail}`);
    const isGiven = (assumption) => order.without?.includes(assumption) ?? assumption !== "single execution";
    const { traced, recorded, ...rest } = order;
    const found = await shrink(
      { ...rest, scenario },
      {
        without: dropped.filter(isGiven),
        isOver: () => interrupted || Date.now() > began + limit,
        attempt: async (smaller) => {
          const { violations, counts } = await simulator.simulate(smaller);
          const breaks = violations.some((violation) => violation.invariant === invariant);
          return { breaks, requests: counts.requests ?? 0 };
        },
        onSmaller: ({ scenario }, tries) => log(`  … ${sizeOf(scenario)}, after ${tries} tries`),
      },
    );
    return { ...found, invariant, seconds: (Date.now() - began) / 1_000 };
  } finally {
    process.off("SIGINT", interrupt);
    simulator.end();
  }
}

/** A scenario in a few words. */
function sizeOf({ processes, endpoints, calls, faults }) {
  return `${processes} processes, ${endpoints} endpoints, ${calls} calls each, ${faults.length} kinds of faults`;
}

/** Shrinks a failing simulation, and writes what repeats it beside its picture. */
export async function leaveSmallest(bundle, order, { limit, directory, flags = "" }) {
  console.log(
    `looking for a smaller simulation that fails as seed ${order.seed} does (Ctrl+C: the best so far)`,
  );
  const found = await shrinkFailure(bundle, order, { limit }).catch((error) => {
    if (!(error instanceof NothingToShrink)) throw error;
    console.log(`nothing to make smaller: ${error.message}`);
  });
  if (!found) return;
  const { failing, tries, seconds, isComplete } = found;
  const name = join(directory, `seed-${order.seed}-smallest`);
  await mkdir(directory, { recursive: true });
  await writeFile(`${name}.json`, `${JSON.stringify(failing, null, 2)}\n`);
  const rest = isComplete ? "nothing smaller fails" : "not everything was tried";
  console.log(
    `smallest after ${tries} tries in ${seconds.toFixed(1)} s (${rest}): ${sizeOf(failing.scenario)}`,
  );
  console.log(`  ${JSON.stringify(failing.scenario)}`);
  await writePicture(bundle, failing, { file: `${name}.html` });
  console.log(`  node evidence/sim.mjs --replay ${shown(`${name}.json`)} --trace${flags}`);
}

/** What leaveSmallest() has written. */
export async function readFailing(file) {
  return JSON.parse(await readFile(file, "utf8"));
}
