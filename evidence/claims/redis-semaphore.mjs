import { setTimeout as sleep } from "node:timers/promises";
import { described, lockKey, rival, within } from "./world.mjs";

const name = "redis-semaphore 5.8.0";
const hour = 3_600_000;

/** What was observed of redis-semaphore, and the same here. */
export const redisSemaphoreRows = [
  {
    package: name,
    peer: "`RedlockMutex` returns expired locks, too (ttl 200 ms, replies after 400 ms): two holders",
    ours: "refused",
    async observePeer(world) {
      const [server] = world.servers;
      const proxy = await world.redisProxy(server);
      const slow = new world.peers.RedlockMutex([await world.redis(proxy)], world.key, { lockTimeout: 200 });
      const other = new world.peers.RedlockMutex([await world.redis(server)], world.key);
      world.onEnd(() => other.release());
      proxy.replyDelay = 400;
      const acquiring = slow.tryAcquire();
      await sleep(300);
      await other.acquire();
      const both = (await acquiring) && slow.isAcquired && other.isAcquired;
      slow.stopRefresh();
      return { text: both ? "two holders" : "one holder", holds: both };
    },
    async observeOurs(world) {
      const { proxy, endpoint } = await world.restProxy(world.servers[0]);
      const slow = world.redlock([endpoint], { ttl: 200, timeout: 1_000 });
      const other = world.redlock([world.servers[0]]);
      proxy.replyDelay = 400;
      const acquiring = within(5_000, slow.acquire(world.key, { wait: 0 }));
      await sleep(300);
      const lock = await other.acquire(world.key);
      const outcome = await acquiring;
      const text = `${described(outcome)}; the other has ${lock.remaining() > 0 ? "a valid lock" : "none"}`;
      return { text, holds: outcome.state === "rejected" && lock.remaining() > 0 };
    },
  },
  {
    package: name,
    peer: "`RedlockSemaphore` of 2 on three endpoints, each client cut off from another one: three holders",
    ours: "two holders",
    async observePeer(world) {
      const acquired = await eachCutOff(async (reachable) => {
        const clients = [];
        for (const [index, server] of world.servers.entries()) {
          const proxy = await world.redisProxy(server);
          clients.push(await world.redis(proxy));
          if (!reachable(index)) proxy.down(true);
        }
        const options = { acquireAttemptsLimit: 1, refreshInterval: 0 };
        return new world.peers.RedlockSemaphore(clients, world.key, 2, options).tryAcquire();
      });
      return { text: `${acquired} holders`, holds: acquired === 3 };
    },
    async observeOurs(world) {
      const acquired = await eachCutOff(async (reachable) => {
        const links = await Promise.all(world.servers.map((server) => world.restProxy(server)));
        links.forEach(({ proxy }, index) => {
          proxy.down(!reachable(index));
        });
        const redlock = world.redlock(links.map(({ endpoint }) => endpoint));
        const semaphore = new world.ours.Semaphore(redlock, world.key, { limit: 2 });
        const outcome = await within(5_000, semaphore.acquire({ wait: 500 }));
        return outcome.state === "fulfilled";
      });
      return { text: `${acquired} holders`, holds: acquired === 2 };
    },
  },
  {
    package: name,
    peer: "a client whose clock is an hour ahead evicts the holders of a `RedlockSemaphore`: two holders of one permit",
    ours: "the endpoint's clock decides; refused",
    async observePeer(world) {
      const options = { acquireAttemptsLimit: 1, refreshInterval: 0 };
      const make = async () =>
        new world.peers.RedlockSemaphore([await world.redis(world.servers[0])], world.key, 1, options);
      const [first, second] = [await make(), await make()];
      await first.acquire();
      const acquired = await ahead(hour, () => second.tryAcquire());
      return { text: acquired ? "two holders" : "refused", holds: acquired && first.isAcquired };
    },
    async observeOurs(world) {
      const make = (options) =>
        new world.ours.Semaphore(world.redlock([world.servers[0]], options), world.key, { limit: 1 });
      const first = await make({}).acquire();
      const { systemRuntime } = world.ours;
      const runtime = { ...systemRuntime, now: () => systemRuntime.now() + hour };
      const second = await make({ runtime }).tryAcquire();
      return { text: second ? "two holders" : "refused", holds: second === null && first.remaining() > 0 };
    },
  },
  {
    package: name,
    peer: "a refresh fails: an unhandled rejection, and `isAcquired` stays true after the ttl",
    ours: "no unhandled rejection; the signal aborts before the ttl is over",
    async observePeer(world) {
      const proxy = await world.redisProxy(world.servers[0]);
      const options = { lockTimeout: 600, refreshInterval: 200 };
      const mutex = new world.peers.Mutex(await world.redis(proxy), world.key, options);
      await mutex.acquire();
      proxy.down(true);
      const unhandled = await unhandledIn(900);
      const { isAcquired } = mutex;
      mutex.stopRefresh();
      const text = `${unhandled > 0 ? "unhandled rejections" : "none unhandled"}, isAcquired ${isAcquired}`;
      return { text, holds: unhandled > 0 && isAcquired };
    },
    async observeOurs(world) {
      const [server] = world.servers;
      const lock = await world.redlock([server]).acquire(world.key, { ttl: 600, autoExtend: true });
      server.faults.add({ fault: "down" });
      const unhandled = await unhandledIn(900);
      const text = `${unhandled} unhandled rejections, signal ${lock.signal.aborted ? "aborted" : "quiet"}`;
      return { text, holds: unhandled === 0 && lock.signal.aborted };
    },
  },
  {
    package: name,
    peer: "an outage looks like contention: `tryAcquire()` of a `RedlockMutex` is false in both cases",
    ours: "null when it is held, `QuorumError` in an outage",
    async observePeer(world) {
      const proxy = await world.redisProxy(world.servers[0]);
      const clients = [await world.redis(proxy)];
      const options = { acquireAttemptsLimit: 1, acquireTimeout: 200 };
      const attempt = () => new world.peers.RedlockMutex(clients, world.key, options).tryAcquire();
      await rival(world.servers[0], `mutex:${world.key}`, 60_000);
      const held = await attempt();
      proxy.down(true);
      const outage = await attempt();
      return { text: `held: ${held}, outage: ${outage}`, holds: held === false && outage === false };
    },
    async observeOurs(world) {
      const [server] = world.servers;
      const redlock = world.redlock([server]);
      await rival(server, lockKey(world.key), 60_000);
      const held = await redlock.tryAcquire(world.key);
      server.faults.add({ fault: "down" });
      const outage = await within(5_000, redlock.tryAcquire(world.key));
      const isTold = held === null && outage.error?.code === "NO_QUORUM";
      return { text: `held: ${held}, outage: ${outage.error?.code ?? outage.state}`, holds: isTold };
    },
  },
  {
    package: name,
    peer: "a refused `RedlockMultiSemaphore` leaves its permits behind: the clean-up removes other names",
    ours: "leaves nothing behind",
    async observePeer(world) {
      const [first, ...others] = world.servers;
      const clients = await Promise.all(world.servers.map((server) => world.redis(server)));
      const options = { acquireAttemptsLimit: 1, acquireTimeout: 300, refreshInterval: 0 };
      // Full at two of three endpoints, so that a grant of the third one is not a quorum.
      for (const server of others) {
        const client = await world.redis(server);
        await new world.peers.RedlockMultiSemaphore([client], world.key, 2, 2, options).acquire();
      }
      const refused = new world.peers.RedlockMultiSemaphore(clients, world.key, 2, 2, options);
      const acquired = await refused.tryAcquire();
      const left = await first.execute(["ZCARD", `semaphore:${world.key}`]);
      return { text: `acquired: ${acquired}, ${left} permits left behind`, holds: !acquired && left > 0 };
    },
    async observeOurs(world) {
      const [first, ...others] = world.servers;
      for (const server of others) {
        const semaphore = new world.ours.Semaphore(world.redlock([server]), world.key, { limit: 2 });
        await semaphore.acquire();
        await semaphore.acquire();
      }
      const semaphore = new world.ours.Semaphore(world.redlock(world.servers), world.key, { limit: 2 });
      const acquired = await semaphore.tryAcquire();
      const keys = await first.execute(["KEYS", `*slot*${world.key}*`]);
      return {
        text: `acquired: ${acquired !== null}, ${keys.length} left behind`,
        holds: !acquired && keys.length === 0,
      };
    },
  },
];

/** How many of three clients acquire, each cut off from another endpoint. */
async function eachCutOff(acquire) {
  let acquired = 0;
  for (const unreachable of [0, 1, 2]) {
    if (await acquire((index) => index !== unreachable)) acquired += 1;
  }
  return acquired;
}

/** Runs an action while this process's wall clock is ahead. */
async function ahead(ms, action) {
  const { now } = Date;
  Date.now = () => now() + ms;
  try {
    return await action();
  } finally {
    Date.now = now;
  }
}

/** How many rejections nobody handles within so many ms. */
async function unhandledIn(ms) {
  let count = 0;
  const note = () => {
    count += 1;
  };
  process.on("unhandledRejection", note);
  await sleep(ms);
  process.off("unhandledRejection", note);
  return count;
}
