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
const hasCurl = spawnSync("curl", ["--version"]).status === 0;

let project: Project;
let port = 3000;
const stops: (() => Promise<void>)[] = [];
beforeAll(async () => {
  project = await installPacked();
  // The tests cannot reach the registry.
  const converter = "node_modules/@remix-run/node-fetch-server";
  mkdirSync(join(project.folder, dirname(converter)), { recursive: true });
  symlinkSync(resolve(converter), join(project.folder, converter));
  for (const fence of start) {
    if (fence.file?.endsWith(".mjs")) writeFileSync(join(project.folder, fence.file), fence.text);
  }
  // Something else may listen at the ports of the pages.
  background(blockWith("npx redis-rest-local").text.replace(/--port \d+ /, ""));
  const variables = join(project.folder, ".dev.vars");
  await until(() => existsSync(variables) && readFileSync(variables, "utf8").includes("TOKEN_3"), "the file");
}, 120_000);
afterAll(async () => {
  await Promise.all(stops.map((stop) => stop()));
  project.remove();
});

describe.skipIf(!hasCurl)("docs/getting-started.md", () => {
  it("leads to a handler that acts once", async () => {
    port = await freePort();
    const server = background(blockWith("node --env-file").text);
    await until(() => server.printed().includes("listening"), "the server");
    const requests = start.filter(({ text, language }) => language === "sh" && text.startsWith("curl"));
    expect(requests).toHaveLength(2);
    for (const block of requests) {
      expect(`${shell(block.text.replaceAll("localhost:3000", `localhost:${port}`))}\n`).toBe(
        outputAfter(block),
      );
    }
    await until(() => server.printed().includes("payment"), "what the server prints");
    expect(server.printed()).toBe(`listening on port ${port}\npayment 1: 10\n`);
  });
});

function blockWith(text: string): Fence {
  const found = start.find((fence) => fence.language === "sh" && fence.text.includes(text));
  if (!found) throw new Error(`no block has: ${text}`);
  return found;
}

function outputAfter(block: Fence): string {
  const next = start[start.indexOf(block) + 1];
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
  return { ...Object.fromEntries(others), PORT: String(port) };
}
