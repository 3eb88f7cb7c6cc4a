// The imports between the parts of src/: one part is a folder, or a file at the root. `npm run arrows` prints them.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { project } from "./load.mjs";

const specifier = /^(?:import|export)\b[^"';]*?\bfrom\s+"(\.[^"]+)"|^import\s+"(\.[^"]+)"/gm;

/** The part of src/ that a file belongs to: `lock` for `lock/acquire.ts`, `errors.ts` for itself. */
export const partOf = (file) => file.split("/")[0];

/**
 * Imports between files of src/, types included.
 *
 * @returns {{ from: string, to: string }[]} paths relative to src/
 */
export function imports() {
  const source = join(project, "src");
  const files = readdirSync(source, { recursive: true }).map((name) => name.replaceAll("\\", "/"));
  return files
    .filter((file) => file.endsWith(".ts"))
    .flatMap((from) =>
      [...readFileSync(join(source, from), "utf8").matchAll(specifier)].map(([, some, only]) => ({
        from,
        to: normalize(join(dirname(from), some ?? only)).replaceAll("\\", "/"),
      })),
    );
}

/**
 * Import arrows between parts, each once: by part, the parts that it imports.
 *
 * @returns {Map<string, Set<string>>}
 */
export function arrows(list = imports()) {
  /** @type {Map<string, Set<string>>} */
  const byPart = new Map();
  for (const { from, to } of list) {
    const [one, other] = [partOf(from), partOf(to)];
    if (!byPart.has(one)) byPart.set(one, new Set());
    if (one !== other) byPart.get(one).add(other);
  }
  return byPart;
}

/**
 * The parts in layers, lowest first: each imports lower ones only. `undefined`: there is a circle.
 *
 * @returns {string[][] | undefined}
 */
export function layers(byPart = arrows()) {
  const open = new Map(byPart);
  for (const targets of byPart.values())
    for (const part of targets) if (!open.has(part)) open.set(part, new Set());
  /** @type {string[][]} */
  const found = [];
  while (open.size > 0) {
    const free = [...open].filter(([, targets]) => [...targets].every((part) => !open.has(part)));
    if (free.length === 0) return undefined;
    found.push(free.map(([part]) => part).sort());
    for (const [part] of free) open.delete(part);
  }
  return found;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const byPart = arrows();
  for (const [part, targets] of [...byPart].sort(([a], [b]) => a.localeCompare(b))) {
    console.log(`${part.padEnd(16)} → ${[...targets].sort().join(", ")}`);
  }
  const count = [...byPart.values()].reduce((sum, { size }) => sum + size, 0);
  console.log(
    `\n${count} arrows in ${layers(byPart)?.length ?? "no"} layers${layers(byPart) ? "" : ": a circle"}`,
  );
}
