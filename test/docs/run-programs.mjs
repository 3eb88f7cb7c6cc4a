// Imports programs one after another, each on empty databases, calls what they export, and prints as JSON what each
// printed, and its error.
// In the programs, hosts that end in .example stand for services of the reader: they answer 200 with a JSON body.

import process from "node:process";
import { pathToFileURL } from "node:url";
import { format } from "node:util";
import { calls } from "./calls.mjs";

const { programs, endpoints } = JSON.parse(process.argv[2] ?? "{}");

const fetchReally = globalThis.fetch;
globalThis.fetch = async (input, init) => {
  const { hostname } = new URL(input instanceof Request ? input.url : input);
  return hostname.endsWith(".example") ? Response.json({ ok: true }) : fetchReally(input, init);
};

const reports = [];
const exported = new Map();
const env = { ...process.env };
for (const { program, page, language } of programs) {
  process.env = { ...env };
  await Promise.all(endpoints.map(empty));
  const printed = [];
  console.log = (...values) => printed.push(`${format(...values)}\n`);
  let error;
  // As `node program` sets it.
  process.argv[1] = program;
  try {
    const { href } = pathToFileURL(program);
    // A program that imports another one of its page must load it anew. Programs in JavaScript import none, and may ask
    // whether they are `node program`.
    await within(20_000, async () =>
      callExports(page, await import(language === "ts" ? `${href}?alone` : href)),
    );
  } catch (thrown) {
    error = thrown?.stack ?? String(thrown);
  }
  reports.push({ program, printed: printed.join(""), error });
}
const left = Object.keys(calls).filter((name) => !exported.has(name));
if (left.length > 0) reports.push({ program: "calls.mjs", error: `nothing exports ${left}` });
// On a line of its own, because programs may print past console.log. Some are servers, which would run on.
process.stdout.write(`\n${JSON.stringify(reports)}`, () => process.exit());

async function callExports(page, module) {
  if (page.startsWith("docs/recipes/")) return;
  for (const [name, value] of Object.entries(module)) {
    const numbered = [1, 2, 3].map((number) => `${page} ${name} ${number}`);
    const key = [`${page} ${name}`, ...numbered].find((each) => each in calls && !exported.has(each));
    if (key === undefined) throw new Error(`calls.mjs does not call ${name} of ${page}`);
    exported.set(key, value);
    await calls[key](value, process.env);
  }
}

/** Fails after so many ms, so that the report names the program that hangs. */
async function within(ms, work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${ms} ms`)), ms);
  });
  try {
    await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function empty({ url, token }) {
  const headers = { authorization: `Bearer ${token}` };
  const { ok } = await fetchReally(url, { method: "POST", headers, body: '["FLUSHALL"]' });
  if (!ok) throw new Error(`FLUSHALL failed at ${url}`);
}
