import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterEach, describe, expect, test } from "vitest";
import type { LocalEndpoints } from "../../../local/src/index.ts";
import { type Endpoint, httpEndpoint, Redlock, upstashEndpoint } from "../../../src/index.ts";
import { ioredisEndpoint, nodeRedisEndpoint } from "../../../src/sockets/index.ts";
import { sdkClient } from "../../support/local-endpoints.ts";
import { startProxy } from "../../support/proxy.mjs";
import { openRealEndpoints, redisServer } from "../../support/redis-servers.ts";
import type { TcpProxy } from "../../support/sockets.ts";

// For each kind of endpoint, in front of a real server and with default options: a second after a link has stood still, all calls
// are granted, and the application's own commands on the same client are answered at once.

const ignore = () => undefined;
const kinds = ["HTTP", "ioredis", "node-redis", "@upstash/redis"] as const;
const opened: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

interface Reached {
  readonly endpoint: Endpoint;
  /** A command of the application's own. */
  readonly set?: () => Promise<unknown>;
}

async function reach(
  kind: (typeof kinds)[number],
  local: LocalEndpoints,
): Promise<{ proxy: TcpProxy } & Reached> {
  const [{ redisUrl, url, token }] = local.endpoints as [(typeof local.endpoints)[0]];
  const isSocket = kind === "ioredis" || kind === "node-redis";
  const proxy = await startProxy(Number(new URL(isSocket ? redisUrl! : url).port));
  opened.push(() => proxy.close());
  const set = (client: { set(key: string, value: string): Promise<unknown> }) => () =>
    client.set("foreign", "1");
  if (kind === "ioredis") {
    const client = new Redis(proxy.port, "127.0.0.1").on("error", ignore);
    opened.push(() => client.disconnect());
    return { proxy, endpoint: ioredisEndpoint(client), set: set(client) };
  }
  if (kind === "node-redis") {
    const client = createClient({ socket: { host: "127.0.0.1", port: proxy.port } }).on("error", ignore);
    await client.connect();
    opened.push(() => client.destroy());
    return { proxy, endpoint: nodeRedisEndpoint(client), set: set(client) };
  }
  const through = { url: `http://127.0.0.1:${proxy.port}`, token };
  if (kind === "HTTP") return { proxy, endpoint: httpEndpoint(through) };
  const client = sdkClient(through);
  return { proxy, endpoint: upstashEndpoint(client), set: set(client) };
}

describe.skipIf(!redisServer)("a real server", () => {
  test.each(kinds)("over %s: all is granted a second after its link has stood still", async (kind) => {
    const local = await openRealEndpoints(1);
    opened.push(() => local.close());
    const { proxy, endpoint, set } = await reach(kind, local);
    // Without a bound, rollbacks as text would fill it for half a minute.
    proxy.rate = kind === "HTTP" || kind === "@upstash/redis" ? 800 : 400;
    const redlock = new Redlock({ endpoints: [endpoint] });
    let calls = 0;
    /** A hundred calls a second, for `ms`. */
    async function load(ms: number): Promise<Promise<string>[]> {
      const ends: Promise<string>[] = [];
      const begin = performance.now();
      for (let due = 0; due < ms; due += 10) {
        await sleep(Math.max(0, begin + due - performance.now()));
        calls += 1;
        const call = redlock.using(`n${calls}`, async () => "granted");
        ends.push(call.catch(({ message }: Error) => message.replace(/".*"/, "it")));
      }
      return ends;
    }
    await redlock.using("warm", async () => undefined);
    const all = await load(500);
    proxy.still(true);
    all.push(...(await load(2_500)));
    proxy.still(false);
    all.push(...(await load(1_000)));
    const begin = performance.now();
    const foreign = set?.().then(() => performance.now() - begin);
    const ends = await Promise.all(await load(3_000));
    expect(ends.filter((end) => end !== "granted")).toEqual([]);
    expect((await foreign) ?? 0).toBeLessThan(1_000);
    await Promise.all(all);
  });
});
