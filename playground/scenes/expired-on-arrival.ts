import { raceIn } from "../contender.ts";
import { lastOf } from "../steps.ts";
import { ms, type Scene } from "./scene.ts";

/** ms for which Ann asks in the scene that expires on arrival. */
const shortTtl = 300;

export const expiredOnArrival: Scene = {
  id: "expired-on-arrival",
  name: "Expired on arrival",
  shows: "The endpoints grant a lock, but their answers travel longer than it lasts.",
  endpoints: 3,
  clients: ["Ann"],
  storage: "the ledger",
  acts: [{ name: "", isGuarded: false }],
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
  begin(world, act) {
    const race = raceIn(world, act);
    return {
      ...race,
      async play() {
        for (const { name } of world.endpoints) world.distances.set(`Ann>${name}`, 190);
        await race.actors[0]!.acquire({ ttl: shortTtl, wait: 0 });
      },
      outcome: () =>
        race.holds === 0
          ? `Three endpoints granted it, and still acquire() threw: nothing of the ${shortTtl} ms was left.`
          : "It was acquired.",
    };
  },
};
