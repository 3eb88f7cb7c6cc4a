import { described, within } from "./world.mjs";

/** What was observed of @upstash/lock. */
export const upstashLockRows = {
  "@upstash/lock 0.2.1": [
    {
      peer: "a lost reply and the SDK's retry: `acquire()` is false while its own key holds the lock for the whole lease",
      ours: "sends each request once; where the SDK retries, the script recognises its own value",
      async observe(world) {
        const [server] = world.servers;
        server.faults.add({ fault: "drop-reply", reset: true, command: "SET", times: 1 });
        const lock = lockOf(world);
        const acquired = await lock.acquire();
        const left = await server.execute(["PTTL", world.key]);
        const text = `acquired: ${acquired}, its key stays for another ${Math.round(left / 1_000)} s`;
        return { text, holds: acquired === false && left > 25_000 };
      },
    },
    {
      peer: "`extend(500)` throws",
      ours: "milliseconds are passed on unchanged",
      async observe(world) {
        const lock = lockOf(world);
        await lock.acquire();
        const outcome = await within(5_000, lock.extend(500));
        return { text: described(outcome), holds: outcome.state === "rejected" };
      },
    },
    {
      peer: "a held lock with less than 500 ms left cannot be extended",
      ours: "extended as long as it is valid",
      async observe(world) {
        const lock = lockOf(world, 450);
        await lock.acquire();
        const extended = await lock.extend(5_000);
        const left = await world.servers[0].execute(["PTTL", world.key]);
        return { text: `extend: ${extended}, with ${left} ms left`, holds: extended === false && left > 0 };
      },
    },
    {
      peer: "two calls share a `Lock`: the second `acquire()` fails, and the first holder can no longer release",
      ours: "each acquire returns a handle of its own",
      async observe(world) {
        const lock = lockOf(world);
        const first = await lock.acquire();
        const second = await lock.acquire({ retry: { attempts: 1, delay: 10 } });
        const released = await lock.release();
        const left = await world.servers[0].execute(["EXISTS", world.key]);
        const text = `first: ${first}, second: ${second}, released: ${released}`;
        return { text, holds: first && !second && !released && left === 1 };
      },
    },
  ],
};

function clientOf({ peers, servers }) {
  const [{ url, token }] = servers;
  return new peers.UpstashRedis({ url, token, enableTelemetry: false });
}

function lockOf(world, lease = 30_000) {
  return new world.peers.UpstashLock({ id: world.key, redis: clientOf(world), lease });
}
