// `node evidence/compat.mjs`: Upstash's packages against the endpoints of `redis-rest-local`, in front of redis-server. Prints how
// many cases of evidence/compat passed, and what failed; fails if anything did.
//
// Installs the packages of evidence/compat/package.json when it first runs.

import process from "node:process";
import { load } from "../tools/load.mjs";
import { npmCi } from "../tools/npm-ci.mjs";

const programs = ["redis", "ratelimit", "lock", "query", "queue"];

/** Runs one case, and returns its result. */
async function runCase(name, title, run) {
  const late = new Promise((_, reject) =>
    setTimeout(reject, 30_000, new Error("took longer than 30 s")).unref(),
  );
  try {
    await Promise.race([run(), late]);
    return { package: name, title };
  } catch (error) {
    return { package: name, title, error: error.message };
  }
}

/** Runs all cases of all programs at the same time. */
async function runPrograms(endpoints) {
  const { Redis } = await import("./compat/node_modules/@upstash/redis/nodejs.mjs");
  const regions = endpoints.map(({ url, token }) => new Redis({ url, token, enableTelemetry: false }));
  const [{ url, token }] = endpoints;
  const running = [];
  for (const name of programs) {
    const { cases } = await import(`./compat/${name}.mjs`);
    for (const [title, run] of Object.entries(cases)) {
      running.push(runCase(name, title, () => run({ redis: regions[0], regions, url, token })));
    }
  }
  return Promise.all(running);
}

npmCi("evidence/compat");
const { start } = await load("local/src/index.ts");
const local = await start({ count: 3, engine: "redis" });
const results = await runPrograms(local.endpoints).finally(() => local.close());
console.log("| package | passed |\n| --- | --- |");
for (const name of programs) {
  const all = results.filter((result) => result.package === name);
  console.log(
    `| @upstash/${name} | ${all.filter(({ error }) => error === undefined).length}/${all.length} |`,
  );
}
for (const { package: name, title, error } of results.filter((result) => result.error !== undefined)) {
  console.error(`\n@upstash/${name}: ${title}\n  ${error}`);
  process.exitCode = 1;
}
