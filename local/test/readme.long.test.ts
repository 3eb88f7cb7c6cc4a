import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Fence, fencesOf } from "../../test/docs/fences.ts";
import { freePort } from "../../test/support/free-port.ts";
import { installPacked, type Project } from "../../test/support/packed.ts";
import { until } from "../../test/support/until.ts";

// The recipes of local/README.md, with the packed package and free ports. test/docs runs its programs.

const blocks = fencesOf("local/README.md");

let project: Project;
beforeAll(async () => {
  project = await installPacked();
}, 120_000);
afterAll(() => project.remove());

const running: ChildProcess[] = [];
afterEach(async () => {
  for (const child of running.splice(0)) {
    const ended = new Promise((done) => child.once("exit", done));
    // With its group: what a shell has started must end, too.
    if (child.exitCode === null && process.kill(-child.pid!, "SIGTERM")) await ended;
  }
});

test("the steps of the workflow start an endpoint, and wait for it", async () => {
  const port = String(await freePort());
  const steps = block("yaml")
    .text.replaceAll("8079", port)
    .matchAll(/- run: (.*)/g);
  const [install, startEndpoint, wait, runTests] = [...steps].map(([, command]) => command!);
  expect([install, runTests]).toEqual(["npm ci", "npm test"]);
  const env = { ...process.env, UPSTASH_REDIS_REST_URL: `http://127.0.0.1:${port}` };
  background("bash", ["-ec", `${startEndpoint}\nwait`], env);
  const options = { cwd: project.folder, env, encoding: "utf8" } as const;
  expect(execFileSync("bash", ["-ec", wait!], options)).toBe('{"result":"PONG"}');
});

test("the container's command listens, with its token", async () => {
  const port = await freePort();
  const words = /^CMD (.*)$/m.exec(block("dockerfile").text)![1]!.replaceAll("8079", String(port));
  const [command = "", ...args] = JSON.parse(words) as string[];
  background(join(project.folder, "node_modules/.bin", command), args);
  await answers(port);
});

function block(language: string): Fence {
  return blocks.find((each) => each.language === language)!;
}

function background(command: string, args: readonly string[], env = process.env): void {
  running.push(spawn(command, args, { cwd: project.folder, env, stdio: "ignore", detached: true }));
}

async function answers(port: number): Promise<void> {
  const headers = { authorization: "Bearer local" };
  const ping = () => fetch(`http://127.0.0.1:${port}/ping`, { headers }).then((response) => response.json());
  await until(async () => (await ping().catch(() => ({})))?.result === "PONG", "PONG");
}
