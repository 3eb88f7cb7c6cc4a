import { forget, freeze, setClock } from "./events.ts";
import { receiveLock, sendLock } from "./handoffs.ts";
import { at, large, oneTry, pass, straightInTests, usual } from "./programs.ts";
import type { Program, Scenario } from "./scenario.ts";

// Holding: validity, extensions, restores, hand-over. A lock of 1 000 ms is valid for 988, and the endpoints' clocks,
// which are fast, end it at 992.

const ttl = 1_000;
const options = { ...oneTry, ttl };

/** Tries at each of these times, and holds what it gets for a while. */
function tries(times: readonly number[], length = 0): Program {
  return at(times, async (actor) => {
    const held = await actor.acquire("a", options);
    if (!held) return;
    if (length > 0) await actor.sleep(length);
    await actor.release(held);
  });
}

/** Receives a lock, and releases it at a time. */
function receives(until: number): Program {
  return async (actor) => {
    const held = await receiveLock(actor);
    if (!held) return;
    await actor.until(until);
    await actor.release(held);
  };
}

/** Extends its lock twice; the second time it is restored where it is missing. */
const restoring: Program = async (actor) => {
  const held = await actor.acquire("a", options);
  for (const time of [600, 1_200]) {
    await actor.until(time);
    if (held) await actor.extend(held, ttl);
  }
  if (held) await actor.release(held);
};

export const holdingScenarios: readonly Scenario[] = [
  {
    name: "expiry",
    about:
      "a lock is not released, and another client tries at its end; clocks are set, and the holder stands still",
    endpoints: 1,
    events: [freeze(0), setClock(0, -5_000)],
    clients: [
      async (actor) => {
        const held = await actor.acquire("a", { ...options, timeout: ttl });
        if (held) actor.leave(held);
        await actor.until(3_000);
      },
      async (actor) => {
        await pass(300, 990)(actor);
        await tries([994, 1_020])(actor);
        await pass(2_500)(actor);
      },
    ],
    bounds: usual,
  },
  {
    name: "a frozen holder",
    about: "the holder of a longer lock stands still for most of it; its timers stand still with it",
    endpoints: 1,
    events: [freeze(0)],
    clients: [
      async (actor) => {
        const held = await actor.acquire("a", { ...options, ttl: 3_000 });
        if (held) actor.leave(held);
        await actor.until(6_000);
      },
      async (actor) => {
        await pass(2_500)(actor);
        await tries([2_980])(actor);
        await pass(4_500)(actor);
      },
    ],
    bounds: usual,
  },
  {
    name: "extend against expiry",
    about: "an extension or a release is late, and another client tries at the old end and at the new one",
    endpoints: 1,
    dialect: "redis",
    repeats: true,
    clients: [
      async (actor) => {
        const held = await actor.acquire("a", { ...options, timeout: ttl });
        await actor.until(500);
        if (held) await actor.extend(held, ttl);
        await actor.until(1_300);
        if (held) await actor.release(held);
        await tries([1_550])(actor);
      },
      async (actor) => {
        await pass(700)(actor);
        await tries([995, 1_250, 1_495], 200)(actor);
      },
    ],
    bounds: usual,
  },
  {
    name: "extend, and expire",
    about: "the same, but nothing is released; the holder acquires again after the end",
    endpoints: 1,
    dialect: "redis",
    clients: [
      async (actor) => {
        const held = await actor.acquire("a", { ...options, timeout: 300 });
        await actor.until(500);
        if (held) await actor.extend(held, ttl);
        await actor.until(900);
        if (held) void actor.extend(held, ttl);
        await actor.until(2_000);
        if (held) await actor.release(held);
        const again = await actor.acquire("a", options);
        await actor.until(2_500);
        if (again) await actor.release(again);
      },
      async (actor) => {
        await pass(700)(actor);
        await tries([1_493])(actor);
        await pass(1_100)(actor);
        await actor.until(1_900);
        const held = await actor.acquire("a", options);
        await actor.until(2_300);
        if (held) await actor.release(held);
      },
    ],
    bounds: usual,
  },
  {
    name: "extend by less",
    about:
      "a shorter extension is late or unanswered, then a longer one follows, and another client relies on neither",
    endpoints: 1,
    clients: [
      async (actor) => {
        const held = await actor.acquire("a", options);
        if (!held) return;
        actor.leave(held);
        await actor.until(100);
        await actor.extend(held, 300);
        await actor.until(250);
        await actor.extend(held, ttl);
        await actor.until(1_300);
      },
      tries([450, 600, 900]),
    ],
    bounds: usual,
  },
  {
    name: "two extensions at once",
    about:
      "a longer one, then a shorter one: the holder must not rely on the longer one if that is executed first",
    endpoints: 1,
    clients: [
      async (actor) => {
        const held = await actor.acquire("a", options);
        if (!held) return;
        actor.leave(held);
        const first = actor.extend(held, ttl);
        await Promise.all([first, actor.extend(held, 300)]);
        await actor.until(900);
      },
      tries([350, 500]),
    ],
    bounds: usual,
  },
  {
    name: "late acquire",
    about: "a fenced acquire is executed again after an extension",
    endpoints: 1,
    repeats: true,
    clients: [
      async (actor) => {
        const held = await actor.acquire("a", { ...options, fencing: true });
        if (held) await actor.extend(held, 2 * ttl);
        await actor.until(1_500);
        if (held) await actor.release(held);
      },
      tries([1_200]),
    ],
    bounds: usual,
  },
  {
    name: "using",
    about:
      "a lock extends itself while a routine runs, which may stand still; the endpoint may go away; another client tries",
    endpoints: 1,
    events: [freeze(0), forget(0, 1_000)],
    clients: [
      (actor) => actor.using("a", 700, { ...options, ttl: 400, backoff: () => 30 }),
      tries([395, 690, 710, 1_200]),
    ],
    bounds: usual,
  },
  {
    name: "a stuck holder",
    about:
      "a lock extends itself for as long as it may, and is never released; another is served: its ttl is short, for what it acquires late",
    endpoints: 1,
    clients: [
      async (actor) => {
        const own = { ttl: 400, autoExtend: true, maxHold: 600, backoff: () => 30 };
        const held = await actor.acquire("a", { ...options, ...own });
        if (held) actor.leave(held);
        await actor.until(2_000);
      },
      async (actor) => {
        await actor.until(100);
        const held = await actor.acquire("a", { ...options, ttl: 200, wait: 1_500 });
        if (held) await actor.release(held);
        else
          actor.stage.world.report(
            "waiters are served",
            `${actor.client.name} is refused after the longest hold`,
          );
      },
    ],
    bounds: straightInTests,
  },
  {
    name: "restore",
    about: "an endpoint has lost its memory; the lock is restored there when it is back, and released",
    endpoints: 3,
    given: "6:forget:r0",
    events: [forget(0, 1_100)],
    clients: [restoring, tries([650, 1_300], 50)],
    bounds: large,
  },
  {
    name: "a late restore",
    about:
      "the same, where the request that restores the lock is late, and the lock expires; another client is next",
    endpoints: 3,
    given: "0:late:p0.1,14:late:p0.7",
    clients: [
      async (actor) => {
        const held = await actor.acquire("a", options);
        await actor.until(300);
        if (!held) return;
        actor.leave(held);
        await actor.extend(held, ttl);
      },
      async (actor) => {
        await actor.until(1_300);
        const held = await actor.acquire("a", options);
        if (!held) return;
        await actor.until(1_400);
        await actor.extend(held, ttl);
        await actor.release(held);
      },
    ],
    bounds: large,
  },
  {
    name: "hand-over",
    about:
      "a lock that extends itself is handed over, and its receiver extends it by more; a third client tries",
    endpoints: 1,
    clients: [
      async (actor) => {
        const held = await actor.acquire("a", { ...options, ttl: 400, autoExtend: true, maxHold: 450 });
        await actor.until(50);
        await sendLock(actor, held, 1);
      },
      async (actor) => {
        const held = await receiveLock(actor, { immediate: true });
        if (!held) return;
        await actor.extend(held, 2_000);
        await actor.until(1_000);
        await actor.release(held);
      },
      tries([420, 700]),
    ],
    bounds: usual,
  },
  {
    name: "two letters",
    about: "a lock is handed over by a letter that is delivered to two clients; a third client tries",
    endpoints: 3,
    clients: [
      async (actor) => sendLock(actor, await actor.acquire("a", options), 1, 2),
      receives(250),
      receives(400),
      tries([300, 700], 50),
    ],
    bounds: large,
  },
];
