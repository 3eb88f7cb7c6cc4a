import { freeze } from "./events.ts";
import { freeAs } from "./operators.ts";
import { at, inOrder, large, oneTry, pass, pauses, straightInTests, usual } from "./programs.ts";
import { run } from "./runs.ts";
import type { Program, Scenario } from "./scenario.ts";

// Idempotent runs that lock a resource. A lease of 400 ms is valid for 394, and the endpoints' clocks, which are fast,
// end it at 397. It is renewed at its half.

const lock = ["a"];

/** Acquires the lock as a plain one, holds it for a while, and releases it. */
function plain(start: number, length = 40, ttl = 400): Program {
  return async (actor) => {
    await actor.until(start);
    const held = await actor.acquire("a", { ...oneTry, ttl, fencing: true });
    if (!held) return;
    await actor.sleep(length);
    await actor.release(held);
  };
}

export const lockedRunScenarios: readonly Scenario[] = [
  {
    name: "two deliveries about one entity",
    about:
      "a run outlasts its lease, and may stand still; one with another key waits for its lock; the first key comes again",
    endpoints: 1,
    dialect: "redis",
    events: [freeze(0)],
    clients: [
      (actor) => run(actor, 450, { key: "k", lock }),
      async (actor) => {
        await actor.until(10);
        await run(actor, 40, { key: "other", lock, wait: 500, backoff: pauses(200) });
        await actor.until(700);
        await run(actor, 40, { key: "k", lock });
      },
    ],
    bounds: straightInTests,
  },
  {
    name: "a lock beside a run",
    about:
      "a plain lock, then a run that fails, and a plain lock at the end of its lease; clocks differ by an hour",
    endpoints: 1,
    clocks: [0, 3_600_000],
    events: [freeze(0)],
    clients: [
      inOrder(
        (actor) => actor.until(50),
        (actor) => run(actor, 230, { lock, fails: true }),
        plain(700),
      ),
      inOrder(
        plain(0, 100),
        plain(420),
        at([500], (actor) => run(actor, 40, { lock })),
      ),
    ],
    bounds: straightInTests,
  },
  {
    name: "repeated requests of a run with a lock",
    about:
      "requests may be executed again later; a run that fails, its successor, and a lock that is acquired between them",
    endpoints: 1,
    dialect: "redis",
    repeats: true,
    clients: [
      inOrder((actor) => run(actor, 40, { lock, fails: true }), pass(100, 500)),
      inOrder(
        plain(60),
        at([200, 300], (actor) => run(actor, 40, { lock })),
      ),
    ],
    bounds: usual,
  },
  {
    name: "an operator frees a run's lock",
    about:
      "another run, or a lock, is next; the handler goes on, and its result is stored; requests may be executed again",
    endpoints: 1,
    repeats: true,
    clients: [
      (actor) => run(actor, 150, { lock }),
      async (actor) => {
        await actor.until(100);
        await freeAs(actor, "a");
        await plain(110, 100)(actor);
        await run(actor, 40, { lock });
      },
    ],
    bounds: usual,
  },
  {
    name: "a run loses its key, and not its lock",
    about:
      "an operator frees the lock, a late begin acquires it again, and the lease of the key is over first",
    endpoints: 1,
    dialect: "redis",
    repeats: true,
    clients: [
      (actor) => run(actor, 500, { lock }),
      async (actor) => {
        await actor.until(100);
        await freeAs(actor, "a");
        await pass(250)(actor);
        await actor.until(450);
        await run(actor, 100, { lock: ["b"] });
      },
    ],
    bounds: straightInTests,
  },
  {
    name: "runs with a lock on three endpoints",
    about: "two keys and one lock; what is late arrives when the run is over",
    endpoints: 3,
    clients: [
      (actor) => run(actor, 40, { key: "k", lock }),
      (actor) => run(actor, 40, { key: "other", lock, wait: 200 }),
    ],
    bounds: large,
  },
  {
    name: "a late begin of a run with a lock",
    about: "its request to the third endpoint is late; a plain lock is next",
    endpoints: 3,
    given: "2:late:p0.3",
    clients: [(actor) => run(actor, 40, { lock }), plain(150)],
    bounds: large,
  },
  {
    name: "runs with a lock, and lost messages",
    about: "the same, with a plain lock besides, and a client that stands still; messages are lost, not late",
    endpoints: 3,
    loses: true,
    events: [freeze(0)],
    clocks: [3_600_000, 0],
    clients: [
      (actor) => run(actor, 40, { key: "k", lock }),
      async (actor) => {
        await actor.until(10);
        await run(actor, 40, { key: "other", lock, wait: 500, backoff: pauses(200) });
        await plain(600)(actor);
        await run(actor, 40, { key: "k", lock });
      },
    ],
    bounds: straightInTests,
  },
  {
    name: "a minority's fence",
    about:
      "the counters differ, and a run meets the highest one at one endpoint only; messages are lost, not late",
    endpoints: 3,
    loses: true,
    clocks: [3_600_000, 0],
    given: "2:lose:p0.3,18:lose:p1.1",
    clients: [plain(0), at([100], (actor) => run(actor, 40, { lock })), plain(400)],
    bounds: usual,
  },
];
