import { type Contender, raceIn } from "../contender.ts";
import { lastOf } from "../steps.ts";
import { ms, type Scene, withFence } from "./scene.ts";

const storage = "the ledger";

export const lateWriter: Scene = {
  id: "late-writer",
  name: "A late writer",
  shows: "Ann's process freezes while she holds the lock, and writes after Bob got it.",
  endpoints: 3,
  clients: ["Ann", "Bob"],
  storage,
  acts: [
    { name: "Without a fence", isGuarded: false },
    { name: "With a fence", isGuarded: true },
  ],
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
      at: { phase: "executed", client: "Bob", endpoint: storage },
      says: (_, before) => {
        const { fence } = lastOf(before, { phase: "sent", client: "Bob", endpoint: storage });
        return `Bob writes to the ledger${fence ? `, which remembers his fence, ${fence}` : ""}.`;
      },
    },
    {
      at: { phase: "executed", client: "Ann", endpoint: storage, outcome: "held" },
      says: ({ detail = "" }) =>
        `Ann runs again, and writes as if no time had passed. The ledger ${detail.replace("refused", "refuses it")}.`,
    },
    {
      at: { phase: "violated" },
      says: () =>
        "Ann runs again, and writes over Bob's line. Without a fence, the ledger cannot tell that she is late.",
    },
  ],
  begin(world, act) {
    const race = raceIn(world, act);
    const [ann, bob] = race.actors as [Contender, Contender];
    return {
      ...race,
      async play() {
        await ann.acquire();
        await world.time.sleep(300);
        ann.client.freeze();
        await bob.acquire();
        await bob.write("Bob's line");
        await world.time.sleep(500);
        ann.client.thaw();
        await ann.write("Ann's late line");
        await bob.release();
      },
      outcome: () =>
        race.ledger.entries.some(({ by }) => by === "Ann")
          ? "Ann's late line overwrote Bob's: nothing stopped it, because the ledger did not get a fence."
          : "The ledger has Bob's line only. Ann's came too late, and was refused.",
    };
  },
};
