import { amount, Bank } from "../bank.ts";
import type { Handler } from "../handler.ts";
import { receiver } from "../receiver.ts";
import type { Scene } from "./scene.ts";

const [first, second, storage] = ["delivery 1", "delivery 2", "the bank"] as const;

/** One event, delivered twice. */
export const twice: Scene = {
  id: "twice",
  name: "Delivered twice",
  shows: "One event. Delivered twice. Handled once.",
  endpoints: 1,
  clients: [first, second],
  storage,
  acts: [
    { name: "Without redlock-edge", isGuarded: false, endpoints: 0 },
    { name: "With redlock-edge", isGuarded: true },
  ],
  speed: 0.05,
  captions: [
    {
      at: { phase: "called", client: first },
      says: () => "A payment provider delivers evt_1, and your handler begins.",
    },
    {
      at: { phase: "called", client: second },
      says: () => "The answer takes too long, so the provider delivers evt_1 again, to another process.",
    },
    {
      at: { phase: "executed", client: first, endpoint: storage },
      says: () => `The first handler charges ${amount}.`,
    },
    {
      at: { phase: "executed", endpoint: "redis", client: second, outcome: "held" },
      says: () => "Redis knows that evt_1 is running: the second delivery waits for its result.",
    },
    {
      at: { phase: "violated" },
      says: () =>
        `The first delivery has charged ${amount}, and the second one charges it again: nothing told it.`,
    },
    {
      at: { phase: "returned", client: first, name: "handled" },
      says: () => "The first delivery is answered, and its answer is stored with evt_1.",
    },
    {
      at: { phase: "returned", client: second, name: "replayed" },
      says: () => "The second delivery gets the stored answer. Its handler has not run.",
    },
  ],
  begin(world, { isGuarded }) {
    const bank = new Bank(world);
    const receivers = world.clients.map((client) => receiver(client, { world, bank, isGuarded }));
    const [one, two] = receivers as [Handler, Handler];
    return {
      actors: receivers,
      lines: () => bank.lines(),
      async play() {
        for (const { name } of world.clients) world.distances.set(`${name}>${storage}`, 70);
        const answered = one.receive();
        await world.time.sleep(120);
        await Promise.all([answered, two.receive()]);
        bank.close();
      },
      outcome: () =>
        bank.charges.length === 1
          ? `${amount} was charged once: the second delivery got the first one's answer.`
          : `${amount} was charged twice: each delivery has run the handler.`,
    };
  },
};
