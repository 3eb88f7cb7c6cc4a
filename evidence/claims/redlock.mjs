import { setTimeout as sleep } from "node:timers/promises";
import { callsOf, described, rival, within } from "./world.mjs";

/** What was observed of redlock. */
export const redlockRows = {
  "redlock 5.0.0-beta.2": [
    {
      peer: "two endpoints that split 1–1: `acquire` never ends (pending after 3 s, ttl 1 s)",
      ours: "the last answer ends the round; the next one follows after a pause",
      async observe(world) {
        const [first, second] = world.servers;
        await rival(first, world.key, 60_000);
        const clients = [await world.redis(first), await world.redis(second)];
        const redlock = new world.peers.Redlock(clients, { retryCount: 0 });
        const outcome = await within(3_000, redlock.acquire([world.key], 1_000));
        return { text: described(outcome), holds: outcome.state === "pending" };
      },
    },
    {
      peer: "ttl 200 ms, replies after 400 ms: returns a lock that has already expired",
      ours: "refused, rolled back",
      async observe(world) {
        const proxy = await world.redisProxy(world.servers[0]);
        const redlock = new world.peers.Redlock([await world.redis(proxy)], { retryCount: 0 });
        proxy.replyDelay = 400;
        const lock = await redlock.acquire([world.key], 200);
        const left = lock.expiration - Date.now();
        const exists = await world.servers[0].execute(["EXISTS", world.key]);
        return { text: `acquired with ${left} ms left`, holds: left < 0 && exists === 0 };
      },
    },
    {
      peer: "three contenders with one of three endpoints each keep it through all retries: at least two fail",
      ours: "a round without a quorum is rolled back; all are served",
      async observe(world) {
        const contenders = [0, 1, 2].map(async (own) => {
          const proxies = await Promise.all(world.servers.map((server) => world.redisProxy(server)));
          const clients = await Promise.all(proxies.map((proxy) => world.redis(proxy)));
          const redlock = new world.peers.Redlock(clients, { retryCount: 5 });
          const first = () => nearTo(own, proxies);
          return { first, acquire: () => redlock.acquire([world.key], 30_000) };
        });
        const outcomes = await startTogether(await Promise.all(contenders));
        // The last one may still find two endpoints free, once the others have given up.
        const failed = outcomes.filter(({ state }) => state === "rejected").length;
        return { text: `${failed} of 3 failed`, holds: failed >= 2 };
      },
    },
    {
      peer: "`extend` hangs: 3 s after a 1 s lock began, the signal of `using` has not aborted",
      ours: "a local timer aborts the signal in time",
      async observe(world) {
        const proxy = await world.redisProxy(world.servers[0]);
        const redlock = new world.peers.Redlock([await world.redis(proxy)]);
        const seen = new Promise((resolve) => {
          const using = redlock.using(
            [world.key],
            1_000,
            { automaticExtensionThreshold: 500 },
            async (signal) => {
              proxy.loses = "requests";
              await sleep(3_000);
              resolve(signal.aborted);
            },
          );
          // Its release hangs as well, until the connection ends.
          using.catch(() => undefined);
        });
        const aborted = await seen;
        return { text: `signal ${aborted ? "aborted" : "quiet"} after 3 s`, holds: !aborted };
      },
    },
    {
      peer: "the release of `using` fails: its error replaces the routine's result",
      ours: "the routine's result",
      async observe(world) {
        const proxy = await world.redisProxy(world.servers[0]);
        const redlock = new world.peers.Redlock([await world.redis(proxy)], { retryCount: 0 });
        const using = redlock.using([world.key], 5_000, async () => {
          proxy.down(true);
          return "paid";
        });
        const outcome = await within(5_000, using);
        return { text: described(outcome), holds: outcome.state === "rejected" };
      },
    },
    {
      peer: "somebody else has taken the lock during `using`, without retries: extends in a tight loop until the ttl is over",
      ours: "the first refusal aborts the signal",
      async observe(world) {
        const [server] = world.servers;
        const redlock = new world.peers.Redlock([await world.redis(server)], { retryCount: 0 });
        const settings = { automaticExtensionThreshold: 500 };
        const before = await callsOf(server, "evalsha");
        const using = redlock.using([world.key], 1_000, settings, async (signal) => {
          await rival(server, world.key, 60_000);
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
        });
        await within(5_000, using);
        const extensions = (await callsOf(server, "evalsha")) - before - 2;
        return { text: `${extensions} extensions in 0.5 s`, holds: extensions >= 20 };
      },
    },
  ],
};

/** Makes one contender's requests to the other servers late, so that it is the first at its own. */
function nearTo(own, proxies) {
  proxies.forEach((proxy, index) => {
    proxy.requestDelay = index === own ? 0 : 100;
  });
  return () => {
    for (const proxy of proxies) proxy.requestDelay = 0;
  };
}

/** Lets each contender be the first at one server, once; then the network is even. */
async function startTogether(contenders) {
  const restore = contenders.map(({ first }) => first());
  const outcomes = contenders.map(({ acquire }) => within(8_000, acquire()));
  await sleep(150);
  for (const even of restore) even();
  return Promise.all(outcomes);
}
