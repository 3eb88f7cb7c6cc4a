import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { isAlive } from "../../../test/support/is-alive.ts";
import { redisServer } from "../../../test/support/redis-servers.ts";
import { bundleFile } from "../../../tools/load.mjs";

let program: string;
beforeAll(async () => {
  program = await bundleFile("local/src/cli/main.ts", { packages: "external" });
});
afterAll(() => rm(program));

/** The URLs that a command prints. */
async function urlsOf(child: ChildProcess): Promise<string[]> {
  const urls: string[] = [];
  for await (const line of createInterface({ input: child.stdout! })) {
    const url = /^export UPSTASH_REDIS_REST_URL_\d="(.*)"$/.exec(line)?.[1];
    if (url) urls.push(url);
    if (urls.length === 2) break;
  }
  return urls;
}

async function redisBehind(url: string): Promise<number> {
  const { result } = (await (await fetch(`${url}/info/server?_token=t`)).json()) as { result: string };
  return Number(/process_id:(\d+)/.exec(result)![1]);
}

describe.runIf(redisServer !== undefined)("the command with redis-servers", () => {
  test.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"] as const)(
    "leaves nothing behind at %s",
    async (signal) => {
      const scratch = await mkdtemp(join(tmpdir(), "redis-rest-local-cli-"));
      onTestFinished(() => rm(scratch, { recursive: true }));
      const args = [program, "--count", "2", "--token", "t", "--engine", "redis"];
      const child = spawn(process.execPath, args, { env: { ...process.env, TMPDIR: scratch } });
      onTestFinished(() => void child.kill("SIGKILL"));
      const exited = once(child, "exit");
      const pids = await Promise.all((await urlsOf(child)).map(redisBehind));
      expect([pids.filter(isAlive).length, (await readdir(scratch)).length]).toEqual([2, 2]);
      child.kill(signal);
      expect(await exited).toEqual(signal === "SIGKILL" ? [null, signal] : [0, null]);
      await expect.poll(() => pids.filter(isAlive)).toEqual([]);
      await expect.poll(() => readdir(scratch)).toEqual([]);
    },
  );
});
