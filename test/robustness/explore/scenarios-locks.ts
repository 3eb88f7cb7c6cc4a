import { abort, forget } from "./events.ts";
import { inOrder, large, oneTry, usual } from "./programs.ts";
import type { Program, Scenario } from "./scenario.ts";

// Locks: acquire and release, abort, own tokens, fences. Times are ms; a lock of 1 000 is valid for 988, and the
// endpoints' clocks, which are fast, end it at 992.

const ttl = 1_000;
const options = { ...oneTry, ttl };
const waiting = { ...options, wait: 110, backoff: (): number => 70 };

/** Acquires, holds for a while, and releases. */
function turn(own: object, length = 40): Program {
  return async (actor) => {
    const held = await actor.acquire("a", { ...options, ...own });
    await actor.sleep(length);
    if (held) await actor.release(held);
  };
}

export const lockScenarios: readonly Scenario[] = [
  {
    name: "acquire, release",
    about: "two clients acquire a lock in turn; a failed round is rolled back, and the next one follows",
    endpoints: 3,
    clients: [turn({}), turn(waiting)],
    bounds: usual,
  },
  {
    name: "a split vote",
    about:
      "the same, where the first client's first request is late: the second client may get that endpoint",
    endpoints: 3,
    given: "0:late:p0.1",
    clients: [turn({}), turn(waiting)],
    bounds: large,
  },
  {
    name: "one endpoint",
    about: "the same, twice each; a request may be executed again later",
    endpoints: 1,
    dialect: "redis",
    repeats: true,
    clients: [inOrder(turn({}), turn(waiting)), inOrder(turn(waiting), turn({}))],
    bounds: usual,
  },
  {
    name: "two endpoints",
    about: "two clients, of which each may get one of two endpoints",
    endpoints: 2,
    dialect: "redis",
    clients: [turn({}), turn(waiting)],
    bounds: usual,
  },
  {
    name: "a client in between that retries",
    about: "its second reply is the one that is heard",
    endpoints: 1,
    exactReplies: false,
    retries: true,
    clients: [turn({}), turn(waiting)],
    bounds: usual,
  },
  {
    name: "a gateway",
    about: "its answers have a status of its own, or an error beside the result",
    endpoints: 1,
    garbles: true,
    clients: [turn({}), turn(waiting)],
    bounds: usual,
  },
  {
    name: "several resources",
    about: "two resources together, and one of them alone",
    endpoints: 1,
    clients: [
      async (actor) => {
        const held = await actor.acquire(["a", "b"], options);
        await actor.sleep(40);
        if (held) await actor.release(held);
      },
      async (actor) => {
        const held = await actor.acquire("b", waiting);
        await actor.sleep(40);
        if (held) await actor.release(held);
      },
    ],
    bounds: usual,
  },
  {
    name: "abort",
    about: "an acquire is aborted while another client comes and goes",
    endpoints: 1,
    events: [abort(0)],
    clients: [
      async (actor) => {
        const signal = actor.abortable();
        const held = await actor.acquire("a", { ...waiting, signal });
        await actor.sleep(40);
        if (held) await actor.release(held);
      },
      inOrder((actor) => actor.sleep(10), turn(waiting)),
    ],
    bounds: usual,
  },
  {
    name: "abort on three endpoints",
    about: "the same",
    endpoints: 3,
    events: [abort(0)],
    clients: [
      async (actor) => {
        const signal = actor.abortable();
        const held = await actor.acquire("a", { ...waiting, signal });
        if (held) await actor.release(held);
      },
      turn({}, 10),
    ],
    bounds: large,
  },
  {
    name: "own tokens",
    about:
      "an owner acquires again what it holds, releases, and acquires once more; another client tries in between",
    endpoints: 1,
    repeats: true,
    clients: [
      async (actor) => {
        const owner = { ...options, token: "owner" };
        const first = await actor.acquire("a", owner);
        const second = await actor.acquire("a", owner);
        await actor.until(150);
        if (first ?? second) await actor.release((first ?? second)!);
        const third = await actor.acquire("a", owner);
        await actor.until(500);
        if (third) await actor.release(third);
      },
      async (actor) => {
        for (const time of [140, 300, 450]) {
          await actor.until(time);
          const held = await actor.acquire("a", options);
          if (held) await actor.release(held);
        }
      },
    ],
    bounds: usual,
  },
  {
    name: "fences",
    about: "two clients, the first of which has a clock that is an hour ahead, draw fences in turn",
    endpoints: 3,
    clocks: [3_600_000, 0],
    clients: [turn({ fencing: true }), turn({ ...waiting, fencing: true })],
    bounds: large,
  },
  {
    name: "fences and lost messages",
    about: "three grants, each of which may miss an endpoint; messages are lost, not late",
    endpoints: 3,
    loses: true,
    clocks: [3_600_000, 0],
    clients: [
      turn({ fencing: true }, 10),
      inOrder(
        (actor) => actor.until(150),
        turn({ fencing: true }, 10),
        (actor) => actor.until(300),
        turn({ fencing: true }, 10),
      ),
    ],
    bounds: usual,
  },
  {
    name: "fences on one endpoint",
    about: "fenced requests may be executed late, or again: what is rolled back stays rolled back",
    endpoints: 1,
    repeats: true,
    clocks: [3_600_000, 0],
    clients: [
      inOrder(turn({ fencing: true }), turn({ ...waiting, fencing: true })),
      turn({ ...waiting, fencing: true }),
    ],
    bounds: usual,
  },
  {
    name: "idle counters",
    about: "fences are kept for a second: locks are held, and pauses last, for longer",
    retention: ttl,
    endpoints: 1,
    clocks: [0, -3_600_000],
    clients: [
      async (actor) => {
        const held = await actor.acquire("a", { ...options, fencing: true, fenceRetention: ttl });
        for (const time of [600, 1_200, 1_800, 2_400, 3_000]) {
          await actor.until(time);
          if (held) await actor.extend(held, ttl);
        }
        if (held) await actor.release(held);
      },
      async (actor) => {
        for (const time of [3_100, 4_000]) {
          await actor.until(time);
          await turn({ fencing: true, fenceRetention: ttl })(actor);
        }
      },
    ],
    bounds: usual,
  },
  {
    name: "fences after a pause",
    about: "nobody holds the lock for a while, and the next client's clock is an hour behind",
    endpoints: 1,
    clocks: [0, -3_600_000],
    clients: [turn({ fencing: true }), inOrder((actor) => actor.until(3_000), turn({ fencing: true }))],
    bounds: usual,
  },
  {
    name: "counters of the future",
    about: "a client whose clock is ahead draws a fence, which the next client must not fall behind",
    endpoints: 1,
    clocks: [10_000, 0],
    clients: [
      turn({ fencing: true, fenceRetention: ttl }),
      inOrder((actor) => actor.until(3_000), turn({ fencing: true, fenceRetention: ttl })),
    ],
    bounds: usual,
  },
  {
    name: "fences and lost memory",
    about: "clocks agree, and the endpoint forgets its counter",
    endpoints: 1,
    events: [forget(0, 2_000)],
    clients: [turn({ fencing: true }), inOrder((actor) => actor.until(2_500), turn({ fencing: true }))],
    bounds: usual,
  },
];
