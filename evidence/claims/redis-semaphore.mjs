import { setTimeout as sleep } from "node:timers/promises";
import { rival } from "./world.mjs";

const hour = 3_600_000;

/** What was observed of redis-semaphore. */
export const redisSemaphoreRows = {
  "redis-semaphore 5.8.0": [
    {
      peer: "`RedlockMutex` returns expired locks, too (ttl 200 ms, replies after 400 ms): two holders",
      ours: "refused",
      async observe(world) {
        const [server] = world.servers;
        const proxy = await world.redisProxy(server);
        const slow = new world.peers.RedlockMutex([await world.redis(proxy)], world.key, {
          lockTimeout: 200,
        });
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
    },
    {
      peer: "`RedlockSemaphore` of 2 on three endpoints, each client cut off from another one: three holders",
      ours: "two holders",
      async observe(world) {
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
    },
    {
      peer: "a client whose clock is an hour ahead evicts the holders of a `RedlockSemaphore`: two holders of one permit",
      ours: "the endpoint's clock decides; refused",
      async observe(world) {
        const options = { acquireAttemptsLimit: 1, refreshInterval: 0 };
        const make = async () =>
          new world.peers.RedlockSemaphore([await world.redis(world.servers[0])], world.key, 1, options);
        const [first, second] = [await make(), await make()];
        await first.acquire();
        const acquired = await ahead(hour, () => second.tryAcquire());
        return { text: acquired ? "two holders" : "refused", holds: acquired && first.isAcquired };
      },
    },
    {
      peer: "a refresh fails: an unhandled rejection, and `isAcquired` stays true after the ttl",
      ours: "no unhandled rejection; the signal aborts before the ttl is over",
      async observe(world) {
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
    },
    {
      peer: "an outage looks like contention: `tryAcquire()` of a `RedlockMutex` is false in both cases",
      ours: "null when it is held, `QuorumError` in an outage",
      async observe(world) {
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
    },
    {
      peer: "a refused `RedlockMultiSemaphore` leaves its permits behind: the clean-up removes other names",
      ours: "leaves nothing behind",
      async observe(world) {
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
    },
  ],
};

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
