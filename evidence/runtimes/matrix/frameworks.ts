import process from "node:process";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { Redlock } from "../../../src/index.ts";
import { combinationsOf, frameworks, observe, verify } from "../../../test/http/adapters-run.ts";
import { patient } from "../../../test/support/beyond-tests.ts";
import { link } from "../../../test/support/link.ts";

// Express and Fastify on the runtimes that have `node:http`: prints how many combinations of handlers, of middleware around
// them, and of clients that leave were as they are without the package, and the errors of the others.

/** Bun forgets the address of a client that has left. */
const isLeftOut = (title: string) => "Bun" in globalThis && /; json; .*; begun$/.test(title);

const links = [link(memoryEndpoint({ name: "a" }))];
const client = { redlock: new Redlock({ ...patient, endpoints: links }), links };
const failed: Record<string, string> = {};
const passed: string[] = [];
for (const [name, framework] of Object.entries(frameworks)) {
  for (const [index, combination] of combinationsOf(framework).entries()) {
    const title = [name, ...combination].join("; ");
    // As in adapters.test.ts.
    if (index % 7 !== 0 || isLeftOut(title)) continue;
    for (const each of links) each.fate = () => "delivered";
    try {
      verify(await observe(client as never, framework, combination));
      passed.push(title);
    } catch (error) {
      failed[title] = (error as Error).stack ?? String(error);
    }
  }
}
console.log(JSON.stringify({ passed, failed }));
process.exit();
