// `node evidence/compat.mjs`: Upstash's packages against the endpoints of `redis-rest-local`, in front of redis-server. Prints how
// many cases of evidence/compat passed, and what failed, by reason; fails if anything failed for a reason that
// evidence/compat/known.mjs does not have.
//
// node evidence/compat.mjs --suite ../redis-js            instead, the own tests of @upstash/redis, from a checkout
// node evidence/compat.mjs --suite ../redis-js --only geo  those in files with these letters in their name
//
// Installs the packages of evidence/compat/package.json when it first runs.

import { resolve } from "node:path";
import process from "node:process";
import { readArguments } from "../tools/arguments.mjs";
import { load } from "../tools/load.mjs";
import { npmCi } from "../tools/npm-ci.mjs";
import { reasonFor } from "./compat/known.mjs";
import { runSuite } from "./compat/suite/run.mjs";

const usage = "node evidence/compat.mjs [--suite <checkout of redis-js> [--only <part of a file's name>]]";
const option = { type: "string" };
const { suite, only } = readArguments({ suite: option, only: option }, usage);

const programs = ["redis", "ratelimit", "lock", "query", "queue"];

/** Runs one case, and returns its result. */
async function runCase(name, title, run) {
  const late = new Promise((_, reject) =>
    setTimeout(reject, 30_000, new Error("took longer than 30 s")).unref(),
  );
  try {
    await Promise.race([run(), late]);
    return { package: name, name: title };
  } catch (error) {
    return { package: name, name: title, error: error.message };
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
      running.push(runCase(`@upstash/${name}`, title, () => run({ redis: regions[0], regions, url, token })));
    }
  }
  return Promise.all(running);
}

/** The name of the server, and the results on it. */
async function resultsOf(start) {
  // Four for the suite, whose files share none, and three regions for the programs.
  const local = await start({ count: suite === undefined ? 3 : 4, engine: "redis" });
  try {
    const { endpoints } = local;
    const results =
      suite === undefined
        ? await runPrograms(endpoints)
        : await runSuite(resolve(suite), { endpoints, only });
    const [, version] = /redis_version:(\S+)/.exec(await endpoints[0].execute(["INFO", "server"])) ?? [];
    return { title: `redis-server ${version}`, results };
  } finally {
    await local.close();
  }
}

function printTable({ title, results }) {
  console.log(`| package | ${title} |\n| --- | --- |`);
  for (const name of new Set(results.map((result) => result.package))) {
    const all = results.filter((result) => result.package === name);
    console.log(`| ${name} | ${all.filter(({ error }) => error === undefined).length}/${all.length} |`);
  }
}

/** Prints what failed, by reason. Returns whether something failed for no known reason. */
function printFailures({ title, results }) {
  const byReason = new Map();
  for (const result of results.filter(({ error }) => error !== undefined)) {
    const reason = reasonFor(result) ?? "not known";
    byReason.set(reason, [...(byReason.get(reason) ?? []), result]);
  }
  for (const [reason, failed] of byReason) {
    console.log(`\n${title}: ${failed.length} failed: ${reason}`);
    for (const { name, error } of failed) {
      console.log(`  ${name}${reason === "not known" ? `\n    ${error.replaceAll("\n", "\n    ")}` : ""}`);
    }
  }
  return byReason.has("not known");
}

npmCi("evidence/compat");
const { start } = await load("local/src/index.ts");
const found = await resultsOf(start);
printTable(found);
if (printFailures(found)) process.exitCode = 1;
