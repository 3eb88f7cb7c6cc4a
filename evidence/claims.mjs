// `node evidence/claims.mjs`: shows each row of the table in docs/choosing.md that compares this package with others, on the others
// and on this one, with real redis-servers. Prints what it observed, and fails if that contradicts the page, or if the page
// has a row that no program shows. `-- --only redis-semaphore` runs the rows whose text contains that.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { parseArgs } from "node:util";
import { rows } from "./claims/rows.mjs";
import { claimsOf, contradictions, differences } from "./claims/table.mjs";
import { World } from "./claims/world.mjs";

const { values } = parseArgs({ options: { only: { type: "string" } } });
const chosen = rows.filter((row) => `${row.package} ${row.peer}`.includes(values.only ?? ""));
if (chosen.length === 0) throw new RangeError(`no row contains ${JSON.stringify(values.only)}`);

execFileSync(process.execPath, ["tools/build.mjs"], { stdio: "inherit" });
const { peers } = await import("../bench/peers/installed.mjs");
const { start } = await import("../local/dist/index.js");
const ours = {
  ...(await import("../dist/index.js")),
  ...(await import("../dist/idempotency/index.js")),
  ...(await import("../dist/sync/index.js")),
};

// Some of the others leave rejections that nobody handles, which would end this process. One row counts them.
const unhandled = new Set();
process.on("unhandledRejection", (reason) => unhandled.add(String(reason)));

const local = await start({ count: 3, engine: "redis" });
const results = [];
try {
  console.log("\n| package | observed | here |\n| --- | --- | --- |");
  for (const [index, row] of chosen.entries()) {
    const peer = await observe(`row-${index}-peer`, row.observePeer);
    const own = await observe(`row-${index}-ours`, row.observeOurs);
    results.push({ row, peer, ours: own });
    const cell = (text, { text: seen, holds }) => `${text}. ${holds ? "Seen" : "**Not so**"}: ${seen}`;
    console.log(`| ${row.package} | ${cell(row.peer, peer)} | ${cell(row.ours, own)} |`);
  }
} finally {
  await local.close();
}
const wrong = [
  ...differences(claimsOf(readFileSync("docs/choosing.md", "utf8")), rows),
  ...contradictions(results),
];
for (const line of wrong) console.error(`\n${line}`);
for (const reason of unhandled) console.log(`\nunhandled rejection: ${reason}`);
console.log(
  `\n${chosen.length} rows, ${wrong.length === 0 ? "as the page says" : `${wrong.length} differences`}`,
);
// What the other packages still wait for would keep the process alive.
process.exit(wrong.length === 0 ? 0 : 1);

/** Runs a program in a world of its own. An error is an observation, too: it shows nothing of what the page says. */
async function observe(key, program) {
  const world = new World({ key, peers, ours, servers: local.endpoints });
  try {
    return await program(world);
  } catch (error) {
    return { text: `the program failed: ${error.stack ?? error}`, holds: false };
  } finally {
    await world.close();
  }
}
