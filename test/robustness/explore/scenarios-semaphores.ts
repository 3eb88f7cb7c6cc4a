import { large, oneTry, usual } from "./programs.ts";
import type { Program, Scenario } from "./scenario.ts";

// Semaphores.

const permit = { ...oneTry, ttl: 1_000, wait: 100 };

function permits(limit: number, start = 0): Program {
  return async (actor) => {
    await actor.until(start);
    const held = await actor.permit("s", limit, permit);
    await actor.sleep(40);
    if (held) await actor.release(held);
  };
}

export const semaphoreScenarios: readonly Scenario[] = [
  {
    name: "a semaphore of 1",
    about: "two clients and one permit",
    endpoints: 3,
    clients: [permits(1), permits(1)],
    bounds: large,
  },
  {
    name: "a semaphore of 2",
    about: "three clients and two permits",
    endpoints: 3,
    clients: [permits(2), permits(2), permits(2)],
    bounds: large,
  },
  {
    name: "three pairs of endpoints",
    about: "three clients and two permits, where the first two clients meet at one endpoint only",
    endpoints: 3,
    loses: true,
    given: "2:lose:p0.3,5:lose:p1.1",
    clients: [permits(2), permits(2), permits(2)],
    bounds: usual,
  },
  {
    name: "a wrong limit on one endpoint",
    about: "a client with another limit has reached a minority",
    endpoints: 3,
    loses: true,
    given: "1:lose:p0.2,2:lose:p0.3",
    clients: [permits(1), permits(2, 300)],
    bounds: usual,
  },
  {
    name: "a semaphore on one endpoint",
    about:
      "two permits, one of which is extended; requests may be executed again later, and one client has another limit",
    endpoints: 1,
    repeats: true,
    clients: [
      permits(2, 100),
      async (actor) => {
        const held = await actor.permit("s", 2, permit);
        if (held) await actor.extend(held, 2_000);
        await actor.until(1_500);
        if (held) await actor.release(held);
      },
      permits(1, 1_200),
    ],
    bounds: usual,
  },
];
