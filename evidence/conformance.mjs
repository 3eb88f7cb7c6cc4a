// `node evidence/conformance.mjs`: what `redlock-edge doctor --conformance` finds at the servers of this machine. Prints the tables of
// docs/platforms.md; fails if the page has others.
//
// node evidence/conformance.mjs --upstash .dev.vars    with the database that this file names

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { parseEnv } from "node:util";
import { readArguments } from "../tools/arguments.mjs";
import { load, project } from "../tools/load.mjs";

const { upstash } = readArguments(
  { upstash: { type: "string" } },
  "node evidence/conformance.mjs [--upstash <file with the variables of a database>]",
);

const { answersOf, columns, tablesOf } = await load("evidence/conformance/columns.ts");
const { endpointsFromEnv } = await load("src/index.ts");

const found = [];
for (const { title, open } of columns) {
  const { options, close } = await open();
  try {
    found.push({ title, answers: await answersOf(options) });
  } finally {
    await close();
  }
}
if (upstash) {
  const [database] = endpointsFromEnv(parseEnv(await readFile(upstash, "utf8")));
  found.push({ title: "Upstash", answers: await answersOf(database) });
}
const tables = tablesOf(found);
console.log(tables);

const page = await readFile(join(project, "docs/platforms.md"), "utf8");
if (!page.includes(tables)) {
  console.error("\ndocs/platforms.md has other tables");
  process.exitCode = 1;
}
