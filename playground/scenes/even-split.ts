import { type Contender, type Race, raceIn } from "../contender.ts";
import { lastOf } from "../steps.ts";
import type { World } from "../world.ts";
import { type Scene, withFence } from "./scene.ts";

export const evenSplit: Scene = {
  id: "even-split",
  name: "An even split",
  shows: "Three clients ask for one lock at the same moment, and each gets one of three endpoints.",
  endpoints: 3,
  clients: ["Ann", "Bob", "Cleo"],
  storage: "the ledger",
  acts: [{ name: "", isGuarded: true }],
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
  begin(world, act) {
    const race = raceIn(world, act);
    return { ...race, play: () => split(world, race.actors), outcome: () => outcomeOf(race) };
  },
};

async function split(world: World, contenders: readonly Contender[]): Promise<void> {
  for (const [index, { name }] of world.clients.entries()) {
    for (const [other, endpoint] of world.endpoints.entries()) {
      world.distances.set(`${name}>${endpoint.name}`, index === other ? 40 : 90);
    }
  }
  const turns = contenders.map((contender) => contender.acquire());
  await world.time.sleep(200);
  world.distances.clear();
  const first = await Promise.race(contenders.map((contender, index) => turns[index]!.then(() => contender)));
  await world.time.sleep(600);
  for (const contender of contenders) contender.giveUp();
  await first.release();
}

const outcomeOf = ({ holds }: Pick<Race, "holds">): string =>
  holds === 0 ? "Nobody has it yet." : "One of them got a quorum in a later round; never two at once.";
