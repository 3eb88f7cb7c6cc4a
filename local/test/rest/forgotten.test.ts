import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { redisServer } from "../../../test/support/redis-servers.ts";
import { until } from "../../../test/support/until.ts";

/** Uses endpoints and forgets to close them, as a test of a user may. */
const program = `
  import { load } from ${JSON.stringify(pathToFileURL("tools/load.mjs").href)};
  const { start } = await load("local/src/index.ts");
  const [, engine, keeps] = process.argv;
  const local = await start({ count: 1, engine, keepsAlive: keeps !== undefined });
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
    const env = { ...process.env, TMPDIR: folder };
    const command = ["--input-type=module", "-e", program, engine];
    const run = async (...args: string[]) =>
      (await promisify(execFile)(process.execPath, [...command, ...args], { env })).stdout;
    expect(await run()).toBe('{"result":"1"}\n');
    const left = async () => (await readdir(folder)).filter((name) => name.startsWith("redis-rest-local"));
    await until(async () => (await left()).length === 0, "the server to be removed");
    expect(await run("keeps")).toBe('{"result":"1"}\nkept alive\n');
  },
);
