// `node evidence/eviction.mjs`: what a full redis-server does to locks, fences and results, by its maxmemory-policy. Prints the
// table of docs/safety.md, and fails if the page has another one.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { readArguments } from "../tools/arguments.mjs";
import { load, project } from "../tools/load.mjs";

readArguments({}, "node evidence/eviction.mjs");
const { cases, rowOf, tryCase } = await load("evidence/eviction/trial.ts");

const head = [
  "policy",
  "other keys",
  "held locks",
  "fence counters",
  "results",
  "a duplicate",
  "the next fence",
];
const rows = [head, head.map(() => "---")];
for (const each of cases) {
  const seen = await tryCase(each);
  console.log(each.policy, JSON.stringify(seen));
  rows.push(rowOf(each, seen));
}
const table = rows.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
console.log(`\n${table}`);

if (!(await readFile(join(project, "docs/safety.md"), "utf8")).includes(table)) {
  console.error("\ndocs/safety.md has another table");
  process.exitCode = 1;
}
