// `node evidence/compat.mjs`: Upstash's packages against the endpoints of `redis-rest-local`, on redis-server and on the embedded
// engine. Prints how many cases of evidence/compat passed on each, and what failed, by reason; fails if anything failed for
// a reason that evidence/compat/known.mjs does not have.
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

const usage =
  "node evidence/compat.mjs [--engine redis|embedded] [--suite <checkout of redis-js> [--only <part of a file's name>]]";
const option = { type: "string" };
const {
  suite,
  only,
  engine: oneEngine,
} = readArguments({ suite: option, only: option, engine: option }, usage);

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

/** The name of an engine for people: with the version of redis-server. */
async function titleOf(engine, endpoint) {
  if (engine === "embedded") return "embedded engine";
  const [, version] = /redis_version:(\S+)/.exec(await endpoint.execute(["INFO", "server"])) ?? [];
  return `redis-server ${version}`;
}

/** The name of an engine, and the results on it. */
async function resultsOn(engine, start) {
  // Four for the suite, whose files share none, and three regions for the programs.
  const local = await start({ count: suite === undefined ? 3 : 4, engine });
  try {
    const { endpoints } = local;
    const results =
      suite === undefined
        ? await runPrograms(endpoints)
        : await runSuite(resolve(suite), { endpoints, only });
    return { engine, title: await titleOf(engine, endpoints[0]), results };
  } finally {
    await local.close();
  }
}

function printTable(columns) {
  const names = [...new Set(columns.flatMap(({ results }) => results).map((result) => result.package))];
  console.log(`| package | ${columns.map(({ title }) => title).join(" | ")} |`);
  console.log(`| --- |${" --- |".repeat(columns.length)}`);
  for (const name of names) {
    const counts = columns.map(({ results }) => {
      const all = results.filter((result) => result.package === name);
      return `${all.filter(({ error }) => error === undefined).length}/${all.length}`;
    });
    console.log(`| ${name} | ${counts.join(" | ")} |`);
  }
}

/** Prints what failed on an engine, by reason. Returns whether something failed for no known reason. */
function printFailures({ engine, title, results }) {
  const byReason = new Map();
  for (const result of results.filter(({ error }) => error !== undefined)) {
    const reason = reasonFor(engine, result) ?? "not known";
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
const columns = [];
for (const engine of oneEngine === undefined ? ["redis", "embedded"] : [oneEngine]) {
  columns.push(await resultsOn(engine, start));
}
printTable(columns);
for (const column of columns) {
  if (printFailures(column)) process.exitCode = 1;
}
