import { setTimeout as sleep } from "node:timers/promises";
import { callsOf, described, rival, within } from "./world.mjs";

/** What was observed of redlock-universal. */
export const redlockUniversalRows = {
  "redlock-universal 0.8.5": [
    {
      peer: "the clean-up skips a `SET` that timed out; its value stays until its ttl",
      ours: "rolled back on every endpoint where it may be executed",
      async observe(world) {
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
    },
    {
      peer: "`using` with a ttl of 1 s extends in a tight loop",
      ours: "an extension whenever half of the ttl is over",
      async observe(world) {
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
    },
    {
      peer: "`isLocked` is false when Redis is down",
      ours: "`inspect` rejects with `QuorumError`",
      async observe(world) {
        const proxy = await world.redisProxy(world.servers[0]);
        const adapter = new world.peers.IoredisAdapter(await world.redis(proxy), { timeout: 500 });
        const lock = world.peers.createLock({ adapter, key: world.key, ttl: 30_000 });
        await lock.acquire();
        const before = await lock.isLocked(world.key);
        proxy.down(true);
        const during = await lock.isLocked(world.key);
        return { text: `held: ${before}, then Redis down: ${during}`, holds: before && during === false };
      },
    },
    {
      peer: "a quorum of 1 of 3 is accepted: a lock beside the holder of the two other endpoints",
      ours: "the quorum is not configurable; refused",
      async observe(world) {
        for (const server of world.servers.slice(1)) await rival(server, world.key, 60_000);
        const clients = await Promise.all(world.servers.map((server) => world.redis(server)));
        const adapters = clients.map((client) => new world.peers.IoredisAdapter(client));
        const options = { adapters, key: world.key, ttl: 30_000, quorum: 1, retryAttempts: 0 };
        const outcome = await within(5_000, world.peers.createRedlock(options).acquire());
        const text = outcome.state === "fulfilled" ? "acquired beside the holder" : described(outcome);
        return { text, holds: outcome.state === "fulfilled" };
      },
    },
  ],
};

function leftBehind(outcome, ttl) {
  return `${outcome.state}; ${ttl > 0 ? `its value stays for another ${Math.round(ttl / 1_000)} s` : "nothing stays"}`;
}
