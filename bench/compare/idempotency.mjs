import { setTimeout as sleep } from "node:timers/promises";
import { described, within } from "./world.mjs";

// The same schedule for all: a run is still at work when its lease ends, another run takes over and completes, then the
// first one ends, late. A third delivery shows what is stored then.

/** What was observed of a library for idempotency, and the same here. */
export const idempotencyRows = [
  {
    package: "@aws-lambda-powertools/idempotency 2.35.0",
    peer: "a late handler overwrites the result of the run that took over, or deletes it when it fails",
    ours: "completing or freeing a key compares the owner; the second run's result stays",
    async observePeer(world) {
      const { port } = new URL(world.servers[0].redisUrl);
      const client = await world.peers.createClient({ url: `redis://127.0.0.1:${port}` }).connect();
      world.onEnd(() => client.destroy());
      const seen = [];
      for (const fails of [false, true]) {
        const handler = handlerThat(fails);
        const config = new world.peers.IdempotencyConfig({});
        // The lease of a run is what Lambda leaves it.
        config.registerLambdaContext({ getRemainingTimeInMillis: () => 300 });
        const persistenceStore = new world.peers.CachePersistenceLayer({ client });
        const run = world.peers.makeIdempotent(handler, { persistenceStore, config });
        seen.push(await schedule(() => run({ key: `${world.key}-${fails}` })));
      }
      return observed(seen);
    },
    async observeOurs(world) {
      const { proxy, endpoint } = await world.restProxy(world.servers[0]);
      const { Idempotency } = world.ours;
      const late = new Idempotency(world.redlock([endpoint]), { lease: 300, timeout: 100 });
      const others = new Idempotency(world.redlock([world.servers[0]]));
      const seen = [];
      for (const fails of [false, true]) {
        const key = `${world.key}-${fails}`;
        const first = late.run(key, async () => {
          // Cut off, so that the lease is not extended; the handler ignores its signal.
          proxy.loses = "requests";
          await sleep(600);
          proxy.down(true);
          proxy.loses = undefined;
          proxy.down(false);
          if (fails) throw new Error("late failure");
          return "first";
        });
        const end = within(5_000, first);
        await sleep(450);
        await others.run(key, async () => "second");
        await end;
        seen.push(await others.run(key, async () => "third"));
      }
      const text = seen.map(({ status, value }) => `${status} "${value}"`).join("; after a late failure: ");
      return { text, holds: seen.every(({ status, value }) => status === "replayed" && value === "second") };
    },
  },
];

/** A handler whose first call is slow, and then fails if so told. */
function handlerThat(fails) {
  let calls = 0;
  return async function handler() {
    calls += 1;
    const call = ["first", "second", "third"][calls - 1];
    if (call !== "first") return call;
    await sleep(700);
    if (fails) throw new Error("late failure");
    return call;
  };
}

/** What the third of three deliveries gets: the second one comes after 450 ms, the third when the others have ended. */
async function schedule(deliver) {
  const first = within(5_000, deliver());
  await sleep(450);
  await deliver();
  await first;
  return within(5_000, deliver());
}

function observed([overwritten, deleted]) {
  const text = `third delivery: ${described(overwritten)}; after a late failure: ${described(deleted)}`;
  return { text, holds: overwritten.value === "first" && deleted.value === "third" };
}
