// One measurement of `npm run bench -- scale`, in a process of its own: a fresh heap, and its own CPU time.
//
//   node run.mjs '{"what":"different","who":"redlock-edge","n":5000,"servers":[{"url":…,"token":…}]}'
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Redlock } from "../../dist/index.js";
import { peers } from "../peers/installed.mjs";

const ttl = 30_000;
const deleteIfEqual =
  'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0';

let requests = 0;
const { fetch } = globalThis;
globalThis.fetch = (...parameters) => {
  requests += 1;
  return fetch(...parameters);
};

/** By name: makes a function that acquires a resource, and resolves with the function that releases it. */
const clients = {
  "redlock-edge"(servers, options) {
    const endpoints = servers.map(({ url, token }) => ({ url, token, dialect: "upstash" }));
    const redlock = new Redlock({ endpoints, ttl, ...options });
    return async (resource, more) => {
      const lock = await redlock.acquire(resource, more);
      return () => lock.release();
    };
  },
  "@upstash/lock"([server]) {
    const redis = sdk(server, true);
    return async (resource, { wait = 5_000 } = {}) => {
      const lock = new peers.UpstashLock({ id: resource, redis, lease: ttl });
      const acquired = await lock.acquire({
        lease: ttl,
        retry: { attempts: Math.ceil(wait / 100), delay: 100 },
      });
      if (!acquired) throw new Error("not acquired");
      return () => lock.release();
    };
  },
  "a loop over the SDK": ([server]) => loop(sdk(server, true)),
  "a loop over the SDK, no batches": ([server]) => loop(sdk(server, false)),
};

const sdk = ({ url, token }, enableAutoPipelining) =>
  new peers.UpstashRedis({ url, token, enableTelemetry: false, enableAutoPipelining });

/** What many write by hand: SET NX until it is granted, and a script that deletes. */
function loop(redis) {
  return async (resource, { wait = 5_000 } = {}) => {
    const key = `loop:${resource}`;
    const value = randomBytes(16).toString("hex");
    const until = performance.now() + wait;
    while ((await redis.set(key, value, { nx: true, px: ttl })) !== "OK") {
      if (performance.now() > until) throw new Error("not acquired");
      await sleep(50 + 100 * Math.random());
    }
    return () => redis.eval(deleteIfEqual, [key], [value]);
  };
}

/** Acquires n different resources at once, then releases them. */
async function different({ n, acquire }) {
  const run = randomBytes(4).toString("hex");
  const acquired = await Promise.allSettled(
    Array.from({ length: n }, (_, index) => acquire(`${run}-${index}`)),
  );
  const releases = acquired.flatMap(({ value }) => (value ? [value] : []));
  const released = await Promise.allSettled(releases.map((release) => release()));
  const failed = [...acquired, ...released].filter(({ status }) => status === "rejected");
  return { failed: failed.length };
}

/** Holds n locks, acquired one after another, for one renewal of each. */
async function held({ n, acquire }) {
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  const wanted = 20_000 / n;
  const start = performance.now();
  const releases = [];
  while (releases.length < n) {
    releases.push(
      ...(await Promise.all(Array.from({ length: 20 }, () => acquire(randomBytes(6).toString("hex"))))),
    );
    await sleep(Math.max(0, start + wanted * releases.length - performance.now()));
  }
  const timers = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const sentBefore = requests;
  await sleep(ttl / 2);
  globalThis.gc?.();
  const heap = (process.memoryUsage().heapUsed - before) / 1e6;
  const renewals = requests - sentBefore;
  const released = await Promise.allSettled(releases.map((release) => release()));
  const failed = released.filter(({ status, value }) => status === "rejected" || !value).length;
  return { heap, timers, requestsPerRenewal: renewals / n, failed };
}

/** n callers that want the same resource at once, and hold it for no time. */
async function contenders({ n, acquire }) {
  const wait = 600_000;
  const each = async () => (await acquire("one", { wait }))();
  const results = await Promise.allSettled(Array.from({ length: n }, each));
  return { failed: results.filter(({ status }) => status === "rejected").length };
}

/** n acquires and releases, 20 at a time. */
async function cycles({ n, acquire }) {
  let left = n;
  let failed = 0;
  async function worker(name) {
    while (left > 0) {
      left -= 1;
      await acquire(name)
        .then((release) => release())
        .catch(() => {
          failed += 1;
        });
    }
  }
  await Promise.all(Array.from({ length: 20 }, (_, index) => worker(`cycle-${index}`)));
  return { failed };
}

const { what, who, n, servers, options } = JSON.parse(process.argv[2]);
const acquire = clients[who](servers, options);
await (await acquire("warm"))();
requests = 0;
const cpu = process.cpuUsage();
const start = performance.now();
const result = await { different, held, contenders, cycles }[what]({ n, acquire });
const ms = performance.now() - start;
const { user, system } = process.cpuUsage(cpu);
const memory = process.resourceUsage().maxRSS / 1e3;
console.log(JSON.stringify({ ms, cpu: (user + system) / 1e3, memory, requests, ...result }));
process.exit();
