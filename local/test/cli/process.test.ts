import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline/promises";
import { build } from "esbuild";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { RedisConnection } from "../../../local/src/rest/redis/connection.ts";
import { isAlive } from "../../../test/support/is-alive.ts";
import { redisServer } from "../../../test/support/redis-servers.ts";

let built: string;
let scratch: string;
let running: ChildProcess[] = [];

beforeAll(async () => {
  built = await mkdtemp(join(tmpdir(), "redis-rest-local-cli-"));
  await build({
    entryPoints: ["local/src/cli/main.ts"],
    outfile: join(built, "cli.mjs"),
    bundle: true,
    platform: "node",
    format: "esm",
    // CommonJS modules in the bundle require Node's modules.
    banner: {
      js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
    },
  });
});
afterAll(() => rm(built, { recursive: true }));
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), "redis-rest-local-scratch-"));
});
afterEach(async () => {
  for (const child of running) child.kill("SIGKILL");
  running = [];
  await rm(scratch, { recursive: true, force: true });
});

/** Starts the command in a process of its own, with its temporary files in `scratch`. */
async function startCommand(...args: string[]) {
  const child = spawn(process.execPath, [join(built, "cli.mjs"), "--count", "2", ...args], {
    env: { ...process.env, TMPDIR: scratch },
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.push(child);
  const exited = once(child, "exit");
  const urls: string[] = [];
  const redisUrls: string[] = [];
  for await (const line of createInterface({ input: child.stdout! })) {
    const redisUrl = / with (redis:\S+)$/.exec(line)?.[1];
    if (redisUrl) redisUrls.push(redisUrl);
    const url = /^export UPSTASH_REDIS_REST_URL_\d="(.*)"$/.exec(line)?.[1];
    if (url) urls.push(url);
    if (urls.length === 2) break;
  }
  return { child, exited, urls, redisUrls };
}

async function processId(redisUrl: string): Promise<number> {
  const connection = await RedisConnection.open(redisUrl);
  const [info] = await connection.send([["INFO", "server"]]);
  connection.close();
  return Number(/process_id:(\d+)/.exec(new TextDecoder().decode(info as Uint8Array))![1]);
}

describe.runIf(redisServer !== undefined)("the command with redis-servers", () => {
  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "exits with 0 at %s and leaves nothing behind",
    async (signal) => {
      const { child, exited, redisUrls } = await startCommand("--engine", "redis");
      const pids = await Promise.all(redisUrls.map(processId));
      expect(pids).toHaveLength(2);
      child.kill(signal);
      expect(await exited).toEqual([0, null]);
      expect(pids.filter(isAlive)).toEqual([]);
      expect(await readdir(scratch)).toEqual([]);
    },
  );

  test("leaves nothing behind after SIGKILL", async () => {
    const { child, exited, redisUrls } = await startCommand("--engine", "redis");
    const pids = await Promise.all(redisUrls.map(processId));
    expect(pids.filter(isAlive)).toHaveLength(2);
    expect(await readdir(scratch)).toHaveLength(2);
    child.kill("SIGKILL");
    await exited;
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
    await expect.poll(() => readdir(scratch)).toEqual([]);
  });
});

test("the command with the embedded engine exits with 0 at SIGTERM", async () => {
  const { child, exited, urls } = await startCommand("--engine", "embedded");
  expect((await fetch(urls[0]!)).status).toBe(401);
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
});

test.runIf(existsSync("/dev/full"))(
  "the command exits with 1 where its output cannot be written",
  async () => {
    const command = '"$0" "$1" --help >/dev/full';
    const child = spawn("/bin/sh", ["-c", command, process.execPath, join(built, "cli.mjs")]);
    let errors = "";
    child.stderr.on("data", (text) => {
      errors += text;
    });
    expect(await once(child, "close")).toEqual([1, null]);
    expect(errors).toContain("redis-rest-local: standard output: ENOSPC");
  },
);
