import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { seededRandom } from "../../../local/src/memory/seeded-random.ts";
import { type RedisProcess, startRedis } from "../../../local/src/rest/redis/process.ts";
import { type Lock, Redlock } from "../../../src/index.ts";
import { beyondTests } from "../../support/beyond-tests.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { startProxy } from "../../support/proxy.mjs";
import { redisServer } from "../../support/redis-servers.ts";
import { seeded } from "../../support/seeded.ts";
import { type SocketClient, socketEndpoint, type TcpProxy } from "../../support/sockets.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";
import { until } from "../../support/until.ts";

// Three real servers that fail while locks are held over sockets.

const clients: SocketClient[] = ["ioredis", "ioredis 5, exact", "node-redis"];
const start = async (port?: number) =>
  startRedis(redisServer!, await mkdtemp(join(tmpdir(), "redlock-edge-sockets-")), port);

describe.skipIf(!redisServer)("three servers over sockets", () => {
  forbidUnhandledRejections();
  let servers: RedisProcess[];
  let proxies: TcpProxy[];
  let direct: Redis[];
  beforeAll(async () => {
    servers = await Promise.all([start(), start(), start()]);
    proxies = await Promise.all(servers.map(({ port }) => startProxy(port)));
    direct = servers.map(({ port }) =>
      new Redis(port, { retryStrategy: () => 20 }).on("error", () => undefined),
    );
  });
  beforeEach(() => Promise.all(direct.map((one) => one.flushall())));
  afterAll(async () => {
    for (const one of [
      ...proxies.map((proxy) => () => proxy.close()),
      ...direct.map((it) => () => it.disconnect()),
    ]) {
      one();
    }
    await Promise.all(servers.map((server) => server.kill()));
  });

  function open(via: SocketClient, options: object) {
    const opened = proxies.map(({ port }) => socketEndpoint(via, port));
    const endpoints = opened.map(({ endpoint }) => endpoint);
    return {
      redlock: new Redlock({ endpoints, ...options }),
      close() {
        for (const { close } of opened) close();
      },
    };
  }

  test.each(clients)(
    "%s: nobody else acquires a lock while an endpoint fails over to its replica",
    async (via) => {
      const holder = open(via, { ttl: beyondTests, timeout: 10_000 });
      const other = open(via, { ttl: beyondTests, timeout: 5_000, wait: 0 });
      const resource = newResource();
      const [{ port }] = servers as [RedisProcess];
      const replica = await start();
      const control = new Redis(replica.port);
      await control.replicaof("127.0.0.1", port);
      await until(
        async () => String(await control.info("replication")).includes("master_link_status:up"),
        "the replica",
      );
      const lock = await holder.redlock.acquire(resource);
      await until(async () => (await control.dbsize()) === 1, "the replication");
      await servers[0]!.kill();
      expect(await other.redlock.tryAcquire(resource)).toBeNull();
      // What was not replicated in time is lost.
      await control.call("REPLICAOF", "NO", "ONE");
      await control.flushall();
      await control.config("SET", "port", String(port));
      servers[0] = { ...replica, port, kill: () => replica.kill() };
      await until(async () => (await other.redlock.tryAcquire(resource)) === null, "an answer");
      await until(async () => {
        await lock.extend();
        return (await direct[0]!.dbsize()) > 0;
      }, "the lock to be restored");
      expect(await other.redlock.tryAcquire(resource)).toBeNull();
      expect(await lock.release()).toBe(true);
      expect(await other.redlock.tryAcquire(resource)).not.toBeNull();
      control.disconnect();
      for (const { close } of [holder, other]) close();
    },
  );

  test.each(clients)(
    "%s: never two holders while connections and servers fail",
    { timeout: 600_000 },
    async (via) => {
      const random = seededRandom(seeded(1).seed);
      const contenders = Array.from({ length: 5 }, () =>
        open(via, { ttl: 5_000, timeout: 400, wait: 6_000, backoff: { min: 2, max: 30 } }),
      );
      const resource = newResource();
      const inside = new Set<Lock>();
      let [most, turns] = [0, 0];
      // A turn that leaves its lock behind costs the others its ttl.
      const began = Date.now();
      const isOver = () => turns > 40 && Date.now() > began + 5_000;
      const contend = async ({ redlock }: (typeof contenders)[number]) => {
        while (!isOver()) {
          const lock = await redlock.acquire(resource).catch(() => undefined);
          if (!lock) continue;
          inside.add(lock);
          // On a busy machine a ttl may end meanwhile, and the next one be right.
          most = Math.max(most, [...inside].filter((one) => one.remaining() > 0).length);
          await sleep(random() * 4);
          if (random() < 0.3) await lock.extend().catch(() => undefined);
          inside.delete(lock);
          turns += 1;
          await lock.release();
        }
      };
      const nemesis = async () => {
        while (!isOver()) {
          const index = Math.floor(random() * 3);
          const [proxy, { pid }] = [proxies[index]!, servers[index]!];
          const fault = Math.floor(random() * 5);
          if (fault === 0) await direct[index]!.call("CLIENT", "KILL", "TYPE", "normal");
          if (fault === 1) {
            proxy.loses = "replies";
            await sleep(random() * 50);
            proxy.loses = undefined;
            proxy.down(true);
            proxy.down(false);
          }
          if (fault === 2) {
            process.kill(pid, "SIGSTOP");
            await sleep(random() * 600);
            process.kill(pid, "SIGCONT");
          }
          if (fault === 3) {
            proxy.requestDelay = random() * 100;
            await sleep(random() * 100);
            proxy.requestDelay = 0;
          }
          if (fault === 4) {
            proxy.down(true);
            await sleep(random() * 200);
            proxy.down(false);
          }
          await sleep(random() * 60);
        }
      };
      await Promise.all([nemesis(), ...contenders.map(contend)]);
      expect(most).toBe(1);
      console.info(via, turns, "turns; left:", await Promise.all(direct.map((one) => one.keys("*:lock:*"))));
      for (const { close } of contenders) close();
    },
  );
});
