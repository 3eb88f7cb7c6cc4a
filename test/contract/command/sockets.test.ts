import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createClient, createCluster } from "redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Endpoint, Redlock } from "../../../src/index.ts";
import { nodeRedisEndpoint } from "../../../src/sockets/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { freePort } from "../../support/free-port.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { type RedisCluster, startRedisCluster } from "../../support/redis-cluster.ts";
import { redisServer, startServer } from "../../support/redis-servers.ts";
import { run } from "../../unit/cli/terminal.ts";

// The command without a REST API: through the Redis client that the project in the working directory has.

const packages = ["ioredis", "redis"] as const;
const folders: string[] = [];

/** A project's folder, in which one package is installed. */
async function projectWith(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "redlock-edge-project-"));
  folders.push(folder);
  await mkdir(join(folder, "node_modules"));
  await symlink(resolve("node_modules", name), join(folder, "node_modules", name), "dir");
  return folder;
}
afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

/** Gives a server a password. The URL with it. */
async function withPassword(url: string): Promise<string> {
  const client = await createClient({ url }).connect();
  await client.sendCommand(["CONFIG", "SET", "requirepass", "pass@word"]);
  await client.sendCommand(["FLUSHALL"]);
  client.destroy();
  return url.replace("redis://", "redis://:pass%40word@");
}

describe.skipIf(!redisServer)("through sockets", () => {
  let urls: string[];
  let env: Record<string, string>;
  const clients: Pick<ReturnType<typeof createClient>, "destroy" | "sendCommand">[] = [];
  let endpoints: Endpoint[];
  let redlock: Redlock;
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startRedisCluster();
    urls = await Promise.all([1, 2, 3].map(async () => withPassword(await startServer())));
    env = Object.fromEntries(urls.map((url, index) => [`REDIS_URL_${index + 1}`, url]));
    const opened = await Promise.all(urls.map((url) => createClient({ url }).connect()));
    clients.push(...opened);
    endpoints = opened.map((client) => nodeRedisEndpoint(client));
    redlock = new Redlock({ ...patient, endpoints });
  });
  afterAll(async () => {
    for (const client of clients) client.destroy();
    await cluster.close();
  });

  describe.each(packages)("of %s", (name) => {
    let folder: string;
    beforeAll(async () => {
      folder = await projectWith(name);
    });
    const type = (line: string, more: Partial<Parameters<typeof run>[2]> = {}) =>
      run(undefined, line, { env, folder, ...more });

    test("inspects, lists and frees a lock", async () => {
      const resource = freshKey();
      const lock = await redlock.acquire(resource, { ttl: 60_000, note: "nightly" });
      const inspected = await type(`inspect ${resource} --json`);
      expect(JSON.parse(inspected.lines[0]!)).toMatchObject({ state: "held", note: "nightly", quorum: 2 });
      expect((await type("list")).lines.join("\n")).toMatch(
        new RegExp(`lock +${resource} .* 3 of 3 +"nightly"`),
      );
      await new Redlock({ ...patient, endpoints, prefix: "a[b]" }).acquire(resource, { ttl: 60_000 });
      // In a pattern of SCAN, [ begins a class of characters.
      expect((await type("list --prefix a[b]")).lines.join("\n")).toContain(resource);
      expect(await type(`free ${resource} --yes`)).toMatchObject({ code: 0 });
      expect(await lock.verify()).toBe(false);
    });

    test("doctor finds nothing wrong", async () => {
      expect(await type("doctor --conformance")).toMatchObject({ code: 0 });
    });

    test.each<[what: string, url: () => Promise<string> | string, code: string]>([
      ["a wrong password", () => urls[0]!.replace("pass%40word", "hidden-wrong"), "TOKEN"],
      ["no password", () => urls[0]!.replace(":pass%40word@", ""), "TOKEN"],
      ["no server", async () => `redis://localhost:${await freePort()}`, "UNREACHABLE"],
      ["no URL of Redis", () => "localhost:6379", "CONFIG"],
    ])("doctor finds %s", async (_, url, code) => {
      const { lines } = await type("doctor --json --timeout 3000", { env: { REDIS_URL: await url() } });
      expect(JSON.parse(lines[0]!).endpoints).toMatchObject([{ ok: false, advice: [{ code }] }]);
      expect(lines[0]).not.toMatch(/hidden-wrong|pass%40word|pass@word/);
    });

    test("finds what is held at every node of a Cluster, from the URL of one", async () => {
      const REDIS_URL = `redis://127.0.0.1:${cluster.ports[0]}`;
      const own = createCluster({ rootNodes: [{ url: REDIS_URL }] });
      own.on("error", () => undefined);
      try {
        const held = "abcdefgh".split("");
        await cluster.flush();
        const typed = (line: string) => type(line, { env: { REDIS_URL } });
        expect(await typed("doctor")).toMatchObject({ code: 0 });
        await own.connect();
        const onCluster = new Redlock({ ...patient, endpoints: [nodeRedisEndpoint(own)] });
        for (const resource of held) await onCluster.acquire(resource, { ttl: 60_000 });
        const { lines } = await typed("list --json");
        expect(JSON.parse(lines[0]!).held.map((row: { name: string }) => row.name)).toEqual(held);
        for (const resource of held) expect((await typed(`free ${resource} --yes`)).code).toBe(0);
        expect(await typed("list")).toMatchObject({ code: 3 });
      } finally {
        own.destroy();
      }
    });
  });

  test("the REST API comes first, and a file replaces the shell", async () => {
    const folder = await projectWith("redis");
    const file = join(folder, ".env");
    await writeFile(file, `REDIS_URL=${urls[0]}`);
    const rest = { UPSTASH_REDIS_REST_URL: "http://localhost:1", UPSTASH_REDIS_REST_TOKEN: "t" };
    const fromShell = await run(undefined, "inspect a", { env: { ...env, ...rest }, folder });
    expect(fromShell.lines.join("\n")).toContain("localhost:1 ");
    const fromFile = await run(undefined, `inspect a --read-env ${file}`, { env: rest, folder });
    expect(fromFile).toMatchObject({ code: 3 });
  });
});
