import { setTimeout as sleep } from "node:timers/promises";
import { callsOf, described, lockKey, rival, within } from "./world.mjs";

const name = "redlock-universal 0.8.5";

/** What was observed of redlock-universal, and the same here. */
export const redlockUniversalRows = [
  {
    package: name,
    peer: "the clean-up skips a `SET` that timed out; its value stays until its ttl",
    ours: "rolled back on every endpoint where it may be executed",
    async observePeer(world) {
      const [first, ...others] = world.servers;
      const proxy = await world.redisProxy(first);
      const clients = [
        await world.redis(proxy),
        ...(await Promise.all(others.map((each) => world.redis(each)))),
      ];
      const adapters = clients.map((client) => new world.peers.IoredisAdapter(client, { timeout: 200 }));
      const lock = world.peers.createRedlock({ adapters, key: world.key, ttl: 30_000, retryAttempts: 0 });
      for (const server of others) await rival(server, world.key, 60_000);
      proxy.loses = "replies";
      const outcome = await within(5_000, lock.acquire());
      const left = await first.execute(["PTTL", world.key]);
      return { text: leftBehind(outcome, left), holds: outcome.state === "rejected" && left > 25_000 };
    },
    async observeOurs(world) {
      const [first, ...others] = world.servers;
      for (const server of others) await rival(server, lockKey(world.key), 60_000);
      first.faults.add({ fault: "drop-reply" });
      const redlock = world.redlock(world.servers, { ttl: 30_000, timeout: 200 });
      const outcome = await within(5_000, redlock.acquire(world.key, { wait: 0 }));
      const left = await first.execute(["PTTL", lockKey(world.key)]);
      return { text: leftBehind(outcome, left), holds: outcome.state === "rejected" && left < 0 };
    },
  },
  {
    package: name,
    peer: "`using` with a ttl of 1 s extends in a tight loop",
    ours: "an extension whenever half of the ttl is over",
    async observePeer(world) {
      const [server] = world.servers;
      const adapter = new world.peers.IoredisAdapter(await world.redis(server));
      const lock = world.peers.createLock({ adapter, key: world.key, ttl: 1_000 });
      const before = await callsOf(server, "evalsha");
      await within(
        3_000,
        lock.using(() => sleep(1_000)),
      );
      const extensions = (await callsOf(server, "evalsha")) - before;
      return { text: `${extensions} extensions in 1 s`, holds: extensions >= 20 };
    },
    async observeOurs(world) {
      const [server] = world.servers;
      const redlock = world.redlock([server], { ttl: 1_000 });
      let extensions = 0;
      await redlock.using(world.key, async () => {
        server.log.reset();
        await sleep(1_000);
        extensions = server.log.requests;
      });
      return { text: `${extensions} extensions in 1 s`, holds: extensions >= 1 && extensions <= 2 };
    },
  },
  {
    package: name,
    peer: "`isLocked` is false when Redis is down",
    ours: "`inspect` rejects with `QuorumError`",
    async observePeer(world) {
      const proxy = await world.redisProxy(world.servers[0]);
      const adapter = new world.peers.IoredisAdapter(await world.redis(proxy), { timeout: 500 });
      const lock = world.peers.createLock({ adapter, key: world.key, ttl: 30_000 });
      await lock.acquire();
      const before = await lock.isLocked(world.key);
      proxy.down(true);
      const during = await lock.isLocked(world.key);
      return { text: `held: ${before}, then Redis down: ${during}`, holds: before && during === false };
    },
    async observeOurs(world) {
      const [server] = world.servers;
      const redlock = world.redlock([server]);
      await redlock.acquire(world.key);
      server.faults.add({ fault: "down" });
      const outcome = await within(5_000, world.ours.inspect(redlock, world.key));
      return { text: described(outcome), holds: outcome.error?.code === "NO_QUORUM" };
    },
  },
  {
    package: name,
    peer: "a quorum of 1 of 3 is accepted: a lock beside the holder of the two other endpoints",
    ours: "the quorum is not configurable; refused",
    async observePeer(world) {
      for (const server of world.servers.slice(1)) await rival(server, world.key, 60_000);
      const clients = await Promise.all(world.servers.map((server) => world.redis(server)));
      const adapters = clients.map((client) => new world.peers.IoredisAdapter(client));
      const options = { adapters, key: world.key, ttl: 30_000, quorum: 1, retryAttempts: 0 };
      const outcome = await within(5_000, world.peers.createRedlock(options).acquire());
      const text = outcome.state === "fulfilled" ? "acquired beside the holder" : described(outcome);
      return { text, holds: outcome.state === "fulfilled" };
    },
    async observeOurs(world) {
      for (const server of world.servers.slice(1)) await rival(server, lockKey(world.key), 60_000);
      const configured = await within(1_000, open(world, { quorum: 1 }));
      const outcome = await within(5_000, world.redlock(world.servers).acquire(world.key, { wait: 0 }));
      const text = `an option quorum: ${described(configured)}; without: ${described(outcome)}`;
      return { text, holds: configured.state === "rejected" && outcome.error?.code === "LOCK_HELD" };
    },
  },
];

async function open(world, options) {
  return world.redlock(world.servers, options);
}

function leftBehind(outcome, ttl) {
  return `${outcome.state}; ${ttl > 0 ? `its value stays for another ${Math.round(ttl / 1_000)} s` : "nothing stays"}`;
}
