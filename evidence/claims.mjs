// `node evidence/claims.mjs`: shows each row of the table in docs/choosing.md that compares this package with others, on the others,
// with real redis-servers. What this package does is in its own tests. Prints what it observed, and fails if that
// contradicts the page. `--only redis-semaphore` runs the rows whose text contains that.
import process from "node:process";
import { parseArgs } from "node:util";
import { load } from "../tools/load.mjs";
import { rows } from "./claims/rows.mjs";
import { World } from "./claims/world.mjs";

const { values } = parseArgs({ options: { only: { type: "string" } } });
const chosen = rows.filter((row) => `${row.package} ${row.peer}`.includes(values.only ?? ""));
if (chosen.length === 0) throw new RangeError(`no row contains ${JSON.stringify(values.only)}`);

const { peers } = await import("../bench/peers/installed.mjs");
const { start } = await load("local/src/index.ts");

// Some packages leave rejections that nobody handles, which would end this process. One row counts them.
const unhandled = new Set();
process.on("unhandledRejection", (reason) => unhandled.add(String(reason)));

const local = await start({ count: 3, engine: "redis" });
const wrong = [];
try {
  console.log("\n| package | observed |\n| --- | --- |");
  for (const [index, row] of chosen.entries()) {
    const { text, holds } = await observe(`row-${index}`, row);
    console.log(`| ${row.package} | ${row.peer}. ${holds ? "Seen" : "**Not so**"}: ${text} |`);
    if (!holds) wrong.push(`${row.package}: the page says "${row.peer}", observed: ${text}`);
  }
} finally {
  await local.close();
}
for (const line of wrong) console.error(`\n${line}`);
for (const reason of unhandled) console.log(`\nunhandled rejection: ${reason}`);
console.log(
  `\n${chosen.length} rows, ${wrong.length === 0 ? "as the page says" : `${wrong.length} differences`}`,
);
// What the other packages still wait for would keep the process alive.
process.exit(wrong.length === 0 ? 0 : 1);

/** Runs a row's program in a world of its own. An error is an observation, too: it shows nothing of what the page says. */
async function observe(key, row) {
  const world = new World({ key, peers, servers: local.endpoints });
  try {
    return await row.observe(world);
  } catch (error) {
    return { text: `the program failed: ${error.stack ?? error}`, holds: false };
  } finally {
    await world.close();
  }
}
