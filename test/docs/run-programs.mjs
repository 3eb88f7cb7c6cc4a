// Imports programs one after another, each on empty databases, calls what they export, and prints as JSON what each
// printed, and its error; and the calls of calls.mjs that none of them has exported.
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
  // The last of these names the one that hangs.
  console.error(program);
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
    await callExports(page, await import(language === "ts" ? `${href}?alone` : href));
  } catch (thrown) {
    error = thrown?.stack ?? String(thrown);
  }
  reports.push({ program, printed: printed.join(""), error });
}
const left = Object.keys(calls).filter((name) => !exported.has(name));
// On a line of its own, because programs may print past console.log. Some are servers, which would run on.
process.stdout.write(`\n${JSON.stringify({ reports, left })}`, () => process.exit());

async function callExports(page, module) {
  for (const [name, value] of Object.entries(module)) {
    const numbered = [1, 2, 3].map((number) => `${page} ${name} ${number}`);
    const key = [`${page} ${name}`, ...numbered].find((each) => each in calls && !exported.has(each));
    if (key === undefined) throw new Error(`calls.mjs does not call ${name} of ${page}`);
    exported.set(key, value);
    await calls[key](value, process.env);
  }
}

async function empty(endpoint) {
  const { ok } = await send(endpoint, '["FLUSHALL"]');
  if (!ok) throw new Error(`FLUSHALL failed at ${endpoint.url}`);
}

function send({ url, token }, body) {
  const headers = { authorization: `Bearer ${token}` };
  return fetchReally(url, { method: "POST", headers, body });
}
