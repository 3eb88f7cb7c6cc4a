import type { Kind } from "./contender.ts";
import type { Stage } from "./stage.ts";

/** A scene that plays by itself. */
export interface Preset {
  readonly name: string;
  /** What is to be seen. */
  readonly shows: string;
  readonly endpoints: number;
  readonly clients: readonly string[];
  readonly kind: Kind | "webhook";
  readonly fencing: boolean;
  /** ms of the world after which it is over. */
  readonly lasts: number;
  play(stage: Stage): Promise<void>;
  /** In a sentence: what has happened, read from the stage. */
  outcome(stage: Stage): string;
}

const evenSplit: Preset = {
  name: "An even split",
  shows:
    "Three clients ask at the same moment, and each gets one of three endpoints. Nobody has a quorum, so all roll back and try again after random pauses.",
  endpoints: 3,
  clients: ["Ann", "Bob", "Cleo"],
  kind: "lock",
  fencing: true,
  lasts: 5_000,
  async play({ world, contenders }) {
    for (const [index, { name }] of world.clients.entries()) {
      for (const [other, endpoint] of world.endpoints.entries()) {
        world.distances.set(`${name}>${endpoint.name}`, index === other ? 40 : 90);
      }
    }
    const turns = contenders.map((contender) => contender.acquire());
    await world.time.sleep(200);
    world.distances.clear();
    const first = await Promise.race(
      contenders.map((contender, index) => turns[index]!.then(() => contender)),
    );
    await world.time.sleep(600);
    for (const contender of contenders) contender.giveUp();
    await first.release();
  },
  outcome: ({ holds }) =>
    holds === 0 ? "Nobody has it yet." : `One of them got a quorum in a later round; never two at once.`,
};

const expiredOnArrival: Preset = {
  name: "Expired on arrival",
  shows:
    "The endpoints say yes, but their answers take longer than the lock lasts. Other clients call that a lock. This one subtracts the time that passed, finds nothing left, and rolls back.",
  endpoints: 3,
  clients: ["Ann"],
  kind: "lock",
  fencing: false,
  lasts: 2_500,
  async play({ world, contenders }) {
    for (const { name } of world.endpoints) world.distances.set(`Ann>${name}`, 190);
    await contenders[0]!.acquire({ ttl: 300, wait: 0 });
  },
  outcome: ({ holds }) =>
    holds === 0
      ? "Three endpoints granted it, and still acquire() threw: nothing of the 300 ms was left."
      : "It was acquired.",
};

const lateWriter: Preset = {
  name: "A late writer and its fence",
  shows:
    "Ann's process is frozen while it holds the lock. Its ttl ends, Bob acquires the lock and writes. Then Ann wakes up and writes, too. The ledger refuses: her fence is lower than Bob's.",
  endpoints: 3,
  clients: ["Ann", "Bob"],
  kind: "lock",
  fencing: true,
  lasts: 6_500,
  async play({ contenders, pause }) {
    const [ann, bob] = contenders as [(typeof contenders)[0], (typeof contenders)[0]];
    await ann.acquire();
    await pause(300);
    ann.client.freeze();
    await bob.acquire();
    await bob.write("Bob's line");
    await pause(500);
    ann.client.thaw();
    await ann.write("Ann's late line");
    await bob.release();
  },
  outcome: ({ ledger }) =>
    ledger.entries.some(({ by }) => by === "Ann")
      ? "Ann's late line overwrote Bob's: nothing stopped it, because the ledger did not get a fence."
      : "The ledger has Bob's line only. Ann's came too late, and was refused.",
};

const duplicateWebhook: Preset = {
  name: "A webhook delivered six times",
  shows:
    "A payment provider sends one event six times, to two functions. One run charges the card; every other delivery gets its stored answer.",
  endpoints: 3,
  clients: ["fn-1", "fn-2"],
  kind: "webhook",
  fencing: false,
  lasts: 4_000,
  async play({ world, shop, pause }) {
    const id = shop.newId();
    const [first, second] = world.clients as [(typeof world.clients)[0], (typeof world.clients)[0]];
    const all = [shop.deliver(id, first)];
    for (let copy = 0; copy < 5; copy += 1) {
      await pause(copy === 0 ? 60 : 250);
      all.push(shop.deliver(id, copy % 2 === 0 ? second : first));
    }
    await Promise.all(all);
  },
  outcome: ({ shop }) =>
    `${shop.deliveries.length} deliveries, ${[...shop.charges.values()].reduce((sum, times) => sum + times, 0)} charge.`,
};

/** The scenes, in the order in which they are offered. */
export const presets: readonly Preset[] = [evenSplit, expiredOnArrival, lateWriter, duplicateWebhook];
