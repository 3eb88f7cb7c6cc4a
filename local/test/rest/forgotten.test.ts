import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { build } from "esbuild";
import { expect, onTestFinished, test } from "vitest";
import { redisServer } from "../../../test/support/redis-servers.ts";
import { until } from "../../../test/support/until.ts";

/** Uses endpoints and forgets to close them, as a test of a user may. */
const program = `
  import { start } from "./local/src/index.ts";
  const local = await start({ count: 1, engine: process.argv[2], keepsAlive: process.argv[3] === "keeps" });
  const [endpoint] = local.endpoints;
  await endpoint.execute(["SET", "a", "1"]);
  await endpoint.stop();
  await endpoint.start();
  endpoint.faults.add({ fault: "delay", ms: 200 });
  const headers = { authorization: "Bearer " + endpoint.token };
  console.log(await (await fetch(endpoint.url + "/get/a", { headers })).text());
  // It goes off only if something else keeps the process alive.
  setTimeout(() => {
    console.log("kept alive");
    local.close();
  }, 100).unref();`;

test.each(["redis", "embedded"].filter((engine) => engine === "embedded" || redisServer !== undefined))(
  "forgotten endpoints end with their process, unless they are to keep it alive: %s",
  async (engine) => {
    const folder = await mkdtemp(join(tmpdir(), "redlock-edge-forgotten-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const outfile = join(folder, "program.mjs");
    const stdin = { contents: program, resolveDir: resolve("."), loader: "ts" } as const;
    await build({ stdin, bundle: true, platform: "node", format: "esm", outfile });
    const env = { ...process.env, TMPDIR: folder };
    const run = async (...args: string[]) =>
      (await promisify(execFile)(process.execPath, [outfile, engine, ...args], { env })).stdout;
    expect(await run()).toBe('{"result":"1"}\n');
    const left = async () => (await readdir(folder)).filter((name) => name.startsWith("redis-rest-local"));
    await until(async () => (await left()).length === 0, "the server to be removed");
    expect(await run("keeps")).toBe('{"result":"1"}\nkept alive\n');
  },
);
