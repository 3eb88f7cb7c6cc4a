import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { freePort } from "../support/free-port.ts";
import { installPacked, type Project } from "../support/packed.ts";
import { until } from "../support/until.ts";
import { type Fence, fencesOf } from "./fences.ts";

// The first minutes of a reader, with the commands of the pages as they stand there: the package is installed in an
// empty folder, the command writes its file, and the programs read it.

// Processes start slowly on a busy machine.
vi.setConfig({ testTimeout: 90_000 });

const start = fencesOf("docs/getting-started.md");
const readme = fencesOf("README.md");
const webhooks = fencesOf("docs/webhooks.md");
const local = fencesOf("local/README.md");
const missing = ["curl", "openssl"].filter((program) => spawnSync(program, ["--version"]).error);

let project: Project;
let port = 3000;
const stops: (() => Promise<void>)[] = [];
beforeAll(async () => {
  project = await installPacked();
  // The tests cannot reach the registry.
  for (const name of ["@remix-run/node-fetch-server", "hono", "wrangler", ".bin/wrangler"]) {
    const link = join(project.folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(resolve("node_modules", name), link);
  }
  for (const { file, text } of [...start, ...readme, ...webhooks]) {
    if (!file) continue;
    mkdirSync(join(project.folder, dirname(file)), { recursive: true });
    writeFileSync(join(project.folder, file), text);
  }
  // Something else may listen at the ports of the pages.
  background(blockWith(start, "npx redis-rest-local").text.replace(/--port \d+ /, ""));
  const variables = join(project.folder, ".dev.vars");
  await until(() => existsSync(variables) && readFileSync(variables, "utf8").includes("TOKEN_3"), "the file");
}, 120_000);
afterAll(async () => {
  await Promise.all(stops.map((stop) => stop()));
  project.remove();
});

describe.skipIf(missing.length > 0)("docs/getting-started.md", () => {
  it("leads to a handler that acts once", async () => {
    port = await freePort();
    const server = background(blockWith(start, "node --env-file").text);
    await until(() => server.printed().includes("listening"), "the server");
    const requests = start.filter(({ text, language }) => language === "sh" && text.startsWith("curl"));
    expect(requests).toHaveLength(2);
    for (const block of requests) {
      expect(`${shell(block.text.replaceAll("localhost:3000", `localhost:${port}`))}\n`).toBe(
        outputAfter(start, block),
      );
    }
    await until(() => server.printed().includes("payment"), "what the server prints");
    expect(server.printed()).toBe(`listening on port ${port}\npayment 1: 10\n`);
  });
});

describe.skipIf(missing.length > 0)("README.md", () => {
  it.each(["doctor --conformance", "lock.mjs", "cron.mjs"])("%s runs as it stands there", (command) => {
    const block = blockWith(readme, command);
    const printed = shell(block.text);
    if (!command.startsWith("doctor")) expect(printed).toBe(outputAfter(readme, block));
  });
});

describe.skipIf(missing.length > 0)("docs/webhooks.md", () => {
  it("leads to a Worker that acts once on a delivery that arrives five times", async () => {
    const own = await freePort();
    const install = blockWith(webhooks, "npx wrangler dev");
    const begin = install.text.replace(/^npm install.*\n/gm, "");
    const worker = background(begin.replace("wrangler dev", `wrangler dev --port ${own} --inspector-port 0`));
    await until(() => worker.printed().includes("Ready on"), "the Worker");
    const deliver = blockWith(webhooks, "openssl");
    const forge = blockWith(webhooks, '-d "$body "');
    const commands = (...blocks: Fence[]) =>
      blocks.map(({ text }) => text.replaceAll(":8787", `:${own}`)).join("\n");
    const answers = shell(commands(deliver));
    expect(`${answers}\n`).toBe(outputAfter(webhooks, deliver));
    // In one shell, which has the signature.
    expect(`${shell(commands(deliver, forge))}\n`).toBe(`${answers}${outputAfter(webhooks, forge)}`);
    await until(() => worker.printed().includes("fulfil"), "what the Worker prints");
    expect(worker.printed().match(/fulfil .*/g)).toEqual(["fulfil evt_1 true"]);
  });
});

describe.skipIf(missing.length > 0)("local/README.md", () => {
  const recipe = (language: string) => local.find((fence) => fence.language === language)!.text;
  const steps = [...recipe("yaml").matchAll(/- run: (.*)/g)].map(([, command]) => command!);
  const [install, startEndpoint, wait, runTests] = steps;
  const words: string[] = JSON.parse(/^CMD (.*)$/m.exec(recipe("dockerfile"))![1]!);

  it.each([
    ["workflow", `${startEndpoint}\nwait`],
    ["container", `npx ${words.join(" ")}`],
  ])("starts an endpoint in a %s, with the token", async (_, command) => {
    expect([install, runTests]).toEqual(["npm ci", "npm test"]);
    const own = String(await freePort());
    background(command.replace("8079", own));
    const answer = shell(`export UPSTASH_REDIS_REST_URL=http://127.0.0.1:${own}\n${wait}`);
    expect(answer).toBe('{"result":"PONG"}');
  });
});

function blockWith(page: readonly Fence[], text: string): Fence {
  const found = page.find((fence) => fence.language === "sh" && fence.text.includes(text));
  if (!found) throw new Error(`no block has: ${text}`);
  return found;
}

function outputAfter(page: readonly Fence[], block: Fence): string {
  const next = page[page.indexOf(block) + 1];
  if (!next?.output) throw new Error(`${block.page}:${block.line}: the page does not say what this prints`);
  return next.text;
}

function shell(commands: string): string {
  return execFileSync("bash", ["-ec", commands], {
    cwd: project.folder,
    encoding: "utf8",
    env: environment(),
  });
}

/** Starts a block as in a terminal of its own. */
function background(command: string): { printed(): string } {
  const child = spawn("bash", ["-ec", command], { cwd: project.folder, env: environment(), detached: true });
  const ended = once(child, "exit");
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
  }
  stops.push(async () => {
    // With its group: the shell's child must end, too.
    if (child.exitCode === null) process.kill(-child.pid!, "SIGTERM");
    else console.error(`${command} has ended with ${child.exitCode}:\n${printed}`);
    await ended;
  });
  return { printed: () => printed };
}

function environment(): NodeJS.ProcessEnv {
  // What is set already counts more than --env-file.
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith("UPSTASH_"));
  return { ...Object.fromEntries(others), PORT: String(port), WRANGLER_SEND_METRICS: "false" };
}
