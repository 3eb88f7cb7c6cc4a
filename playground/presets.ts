import type { Contender } from "./contender.ts";
import { storageName } from "./names.ts";
import type { Cast, Stage } from "./stage.ts";
import { type Caption, lastOf } from "./steps.ts";

/** A scene that plays by itself. */
export interface Preset extends Cast {
  /** What links call it. */
  readonly id: string;
  readonly name: string;
  /** What is to be seen. */
  readonly shows: string;
  readonly captions: readonly Caption[];
  /** ms of its world in a ms of the page: so that its captions can be read. */
  readonly speed: number;
  play(stage: Stage): Promise<void>;
  /** In a sentence: what has happened, read from the stage. */
  outcome(stage: Stage): string;
}

/** Times of the scenes' world, as a reader wants them. */
const ms = (time = 0): string => `${Math.round(time)} ms`;

const withFence = (fence: number | undefined): string => (fence === undefined ? "" : ` with fence ${fence}`);

const evenSplit: Preset = {
  id: "even-split",
  name: "An even split",
  shows: "Three clients ask for one lock at the same moment, and each gets one of three endpoints.",
  endpoints: 3,
  clients: ["Ann", "Bob", "Cleo"],
  fencing: true,
  speed: 0.1,
  captions: [
    {
      at: { phase: "called", operation: "acquire" },
      nth: 3,
      says: () => "Ann, Bob and Cleo ask all three endpoints. Each of them is near to another one.",
    },
    {
      at: { phase: "stored" },
      nth: 3,
      says: (_, before) => {
        const [first, second] = ["redis-1", "redis-2"].map((endpoint) => lastOf(before, { endpoint }).holder);
        return `The nearest came first: redis-1 is ${first}'s, redis-2 is ${second}'s. Nobody has two of three, the quorum.`;
      },
    },
    {
      at: { phase: "returned", operation: "round", outcome: "held" },
      nth: 3,
      says: () =>
        "The other two endpoints have refused each of them. All roll back what they got, and wait for a random time.",
    },
    {
      at: { phase: "returned", operation: "acquire", outcome: "granted" },
      says: ({ client, fence }) =>
        `${client} waited least, and found the endpoints free: a quorum grants the lock${withFence(fence)}.`,
    },
    {
      at: { phase: "returned", operation: "round", outcome: "held" },
      says: ({ client }) =>
        `${client} comes later and is refused. A quorum is more than half: two clients cannot both have one.`,
    },
    {
      at: { phase: "ended", detail: "released" },
      says: ({ client }) => `${client} has released the lock at the endpoints.`,
    },
  ],
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

/** ms for which Ann asks in the scene that expires on arrival. */
const shortTtl = 300;

const expiredOnArrival: Preset = {
  id: "expired-on-arrival",
  name: "Expired on arrival",
  shows: "The endpoints grant a lock, but their answers travel longer than it lasts.",
  endpoints: 3,
  clients: ["Ann"],
  fencing: false,
  speed: 0.06,
  captions: [
    {
      at: { phase: "called", operation: "acquire" },
      says: () => `Ann asks for a lock of only ${shortTtl} ms, over a slow network.`,
    },
    {
      at: { phase: "stored" },
      nth: 3,
      says: ({ until }) =>
        `All three endpoints grant it, until ${ms(until)}. Their answers are now on their way back.`,
    },
    {
      at: { phase: "sent", operation: "release" },
      says: ({ time }) =>
        `No answer for ${ms(time)}, as long as her lock lasts. None could be used any more: Ann rolls back.`,
    },
    {
      at: { phase: "answered", operation: "acquire", outcome: "granted" },
      nth: 2,
      says: ({ time }, before) =>
        `A quorum says "granted" only now. A client that counts from here relies on its lock until ${ms(time + shortTtl)}. It ends at ${ms(lastOf(before, { phase: "stored" }).until)}.`,
    },
    {
      at: { phase: "returned", operation: "acquire", outcome: "error" },
      says: () => "The endpoints are free again, and acquire() throws: Ann knows that she has no lock.",
    },
  ],
  async play({ world, contenders }) {
    for (const { name } of world.endpoints) world.distances.set(`Ann>${name}`, 190);
    await contenders[0]!.acquire({ ttl: shortTtl, wait: 0 });
  },
  outcome: ({ holds }) =>
    holds === 0
      ? `Three endpoints granted it, and still acquire() threw: nothing of the ${shortTtl} ms was left.`
      : "It was acquired.",
};

const lateWriter: Preset = {
  id: "late-writer",
  name: "A late writer",
  shows: "Ann's process freezes while she holds the lock, and writes after Bob got it.",
  endpoints: 3,
  clients: ["Ann", "Bob"],
  fencing: true,
  speed: 0.3,
  captions: [
    {
      at: { phase: "returned", client: "Ann", operation: "acquire", outcome: "granted" },
      says: ({ fence }) => `A quorum has granted Ann the lock${withFence(fence)}.`,
    },
    {
      at: { phase: "fault", client: "Ann", name: "frozen" },
      says: (_, before) =>
        `Ann's process freezes here. Her lock ends at ${ms(lastOf(before, { phase: "valid", client: "Ann" }).until)}, and she cannot notice.`,
    },
    {
      at: { phase: "returned", client: "Bob", operation: "round", outcome: "held" },
      says: () => "Bob is refused: the endpoints still hold Ann's lock. He asks again and again.",
    },
    {
      at: { phase: "returned", client: "Bob", operation: "acquire", outcome: "granted" },
      says: ({ fence }) => `Ann's lock has expired, so Bob gets it${withFence(fence)}.`,
    },
    {
      at: { phase: "executed", client: "Bob", endpoint: storageName },
      says: (_, before) => {
        const { fence } = lastOf(before, { phase: "sent", client: "Bob", endpoint: storageName });
        return `Bob writes to the ledger${fence ? `, which remembers his fence, ${fence}` : ""}.`;
      },
    },
    {
      at: { phase: "executed", client: "Ann", endpoint: storageName, outcome: "held" },
      says: ({ detail = "" }) =>
        `Ann runs again, and writes as if no time had passed. The ledger ${detail.replace("refused", "refuses it")}.`,
    },
    {
      at: { phase: "violated" },
      says: () =>
        "Ann runs again, and writes over Bob's line. Without a fence, the ledger cannot tell that she is late.",
    },
  ],
  async play({ contenders, pause }) {
    const [ann, bob] = contenders as [Contender, Contender];
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

/** The scenes, in the order in which they are offered. */
export const presets: readonly Preset[] = [evenSplit, expiredOnArrival, lateWriter];
