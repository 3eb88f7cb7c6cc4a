import { setTimeout as sleep } from "node:timers/promises";
import { described, within } from "./world.mjs";

/** What was observed of a library for idempotency. */
export const idempotencyRows = {
  "@aws-lambda-powertools/idempotency 2.35.0": [
    {
      // A run is still at work when its lease ends, another run takes over and completes, then the first one ends, late. A
      // third delivery shows what is stored then.
      peer: "a late handler overwrites the result of the run that took over, or deletes it when it fails",
      ours: "completing or freeing compares the owner; the second run's result stays",
      async observe(world) {
        const client = await connected(world, new URL(world.servers[0].redisUrl).port);
        const seen = [];
        for (const fails of [false, true]) {
          const handler = handlerThat(fails);
          const run = idempotent(world, { handler, client, lease: 300 });
          seen.push(await schedule(() => run({ key: `${world.key}-${fails}` })));
        }
        return observed(seen);
      },
    },
    {
      peer: "the reply to its begin is lost: busy for the whole lease, and no handler runs",
      ours: "`QuorumError`, and the next delivery runs the handler; with `wait`, this one does",
      async observe(world) {
        const [server] = world.servers;
        const proxy = await world.redisProxy(server);
        let calls = 0;
        const handler = async () => {
          calls += 1;
        };
        const cut = await connected(world, proxy.port);
        const client = await connected(world, new URL(server.redisUrl).port);
        proxy.loses = "replies";
        const event = { key: world.key };
        const first = within(5_000, idempotent(world, { handler, client: cut, lease: 10_000 })(event));
        await sleep(200);
        proxy.down(true);
        const outcomes = [
          await first,
          await within(5_000, idempotent(world, { handler, client, lease: 10_000 })(event)),
        ];
        const text = `${calls} calls; ${outcomes.map(({ error, state }) => error?.name ?? state).join(", then ")}`;
        return { text, holds: calls === 0 && outcomes.every(({ state }) => state === "rejected") };
      },
    },
  ],
};

/** A client of node-redis that does not connect again. */
async function connected(world, port) {
  const socket = { host: "127.0.0.1", port: Number(port), reconnectStrategy: false };
  const client = world.peers.createClient({ socket });
  // Without a listener an error of the connection would end the process.
  client.on("error", () => undefined);
  await client.connect();
  world.onEnd(() => client.isOpen && client.destroy());
  return client;
}

/** The handler as Powertools runs it. The lease of a run is what Lambda leaves it, in ms. */
function idempotent(world, { handler, client, lease }) {
  const config = new world.peers.IdempotencyConfig({});
  config.registerLambdaContext({ getRemainingTimeInMillis: () => lease });
  const persistenceStore = new world.peers.CachePersistenceLayer({ client });
  return world.peers.makeIdempotent(handler, { persistenceStore, config });
}

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
