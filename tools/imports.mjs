// `node tools/imports.mjs`: what imports what in the houses of this repository, types included. For each house the arrows
// between its parts (one part is a folder, or a file at the root), and its layers. Fails where files import each other in a
// circle, or a house imports what it must not.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { project } from "./load.mjs";

const specifier =
  /^(?:import|export)\b[^"';]*?\bfrom\s+"([^"]+)"|^import\s+"([^"]+)"|\bimport\("(\.[^"]+)"\)/gm;

/** Each house, and the other folders or files that its files may import. */
export const houses = {
  src: [],
  "lock-server/src": [],
  "local/src": ["lock-server/src", "src/check", "src/cli/text.ts", "src/inspect/stored-key.ts"],
  pictures: ["src", "local/src", "evidence/sim/world/digest.ts"],
  worker: ["src"],
  "evidence/sim": ["src", "local/src"],
};

/**
 * Relative imports of the files of a house.
 *
 * @param {string} house
 * @returns {{ from: string, to: string }[]} paths relative to the project
 */
export function importsOf(house) {
  const files = readdirSync(join(project, house), { recursive: true, encoding: "utf8" })
    .map((name) => `${house}/${name.replaceAll("\\", "/")}`)
    .filter((name) => name.endsWith(".ts"));
  return files.flatMap((from) =>
    [...readFileSync(join(project, from), "utf8").matchAll(specifier)]
      .map(([, named, whole, dynamic]) => named ?? whole ?? dynamic)
      .filter((path) => path.startsWith("."))
      .map((path) => ({ from, to: normalize(join(dirname(from), path)).replaceAll("\\", "/") })),
  );
}

/**
 * The parts of a house by what they import: `lock` for `src/lock/acquire.ts`, `errors.ts` for `src/errors/errors.ts`.
 *
 * @param {string} house
 * @returns {Map<string, Set<string>>}
 */
export function arrows(house) {
  const partOf = (/** @type {string} */ file) => relative(house, file).split("/")[0];
  return graphOf(
    importsOf(house)
      .filter(({ to }) => to.startsWith(`${house}/`))
      .map(({ from, to }) => ({ from: partOf(from), to: partOf(to) })),
  );
}

/**
 * A graph from its edges; those that lead back to where they come from are left out.
 *
 * @param {readonly { from: string, to: string }[]} edges
 */
function graphOf(edges) {
  /** @type {Map<string, Set<string>>} */
  const graph = new Map();
  for (const { from, to } of edges) {
    if (!graph.has(from)) graph.set(from, new Set());
    if (!graph.has(to)) graph.set(to, new Set());
    if (from !== to) graph.get(from).add(to);
  }
  return graph;
}

/**
 * What a graph has in layers, lowest first: each leads to lower ones only. What is left over is in a circle, or leads to one.
 *
 * @param {ReadonlyMap<string, ReadonlySet<string>>} graph
 * @returns {{ layers: string[][], circle: string[] }}
 */
function layersOf(graph) {
  const open = new Map(graph);
  /** @type {string[][]} */
  const layers = [];
  while (open.size > 0) {
    const free = [...open].filter(([, targets]) => [...targets].every((target) => !open.has(target)));
    if (free.length === 0) break;
    layers.push(free.map(([name]) => name).sort());
    for (const [name] of free) open.delete(name);
  }
  return { layers, circle: [...open.keys()] };
}

/**
 * What is wrong with the imports of a house.
 *
 * @param {string} house
 * @returns {string[]}
 */
export function faultsOf(house) {
  const edges = importsOf(house);
  const allowed = [house, ...houses[house]];
  const isAllowed = ({ to }) => allowed.some((place) => to === place || to.startsWith(`${place}/`));
  const { circle } = layersOf(graphOf(edges));
  return [
    ...edges.filter((edge) => !isAllowed(edge)).map(({ from, to }) => `${from} must not import ${to}`),
    ...(circle.length > 0 ? [`in a circle, or above one: ${circle.join(", ")}`] : []),
  ];
}

function print(house) {
  const byPart = arrows(house);
  console.log(`\n${house}\n`);
  for (const [part, targets] of [...byPart].sort(([a], [b]) => a.localeCompare(b))) {
    console.log(`${part.padEnd(20)} → ${[...targets].sort().join(", ")}`);
  }
  const count = [...byPart.values()].reduce((sum, { size }) => sum + size, 0);
  const { layers, circle } = layersOf(byPart);
  console.log(`\n${count} arrows in ${circle.length > 0 ? "a circle" : `${layers.length} layers`}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const house of Object.keys(houses)) print(house);
  const faults = Object.keys(houses).flatMap(faultsOf);
  for (const fault of faults) console.error(`\n${fault}`);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
