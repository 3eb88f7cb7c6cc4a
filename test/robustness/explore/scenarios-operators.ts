import { receiveLock, sendLock } from "./handoffs.ts";
import { forgetAs, freeAs, lookAs } from "./operators.ts";
import { at, inOrder, oneTry, pass, straightInTests, usual } from "./programs.ts";
import { run } from "./runs.ts";
import type { Program, Scenario } from "./scenario.ts";

// Locks that are verified, handed over, or end at a deadline, and what operators do with locks and keys. Times are ms.

const options = { ...oneTry, ttl: 400 };

/** Holds a lock from then on for so many ms. */
function hold(start: number, length: number): Program {
  return async (actor) => {
    await actor.until(start);
    const held = await actor.acquire("a", { ...options, fencing: true });
    await actor.sleep(length);
    if (held) await actor.release(held);
  };
}

/** Verifies a lock at these times. */
function verifying(...times: readonly number[]): Program {
  return async (actor) => {
    const held = await actor.acquire("a", options);
    for (const time of times) {
      await actor.until(time);
      if (held) await actor.verify(held);
    }
    if (held) await actor.release(held);
  };
}

const looking = (...times: readonly number[]) => at(times, (actor) => lookAs(actor, "a"));

export const operatorScenarios: readonly Scenario[] = [
  {
    name: "a verified lock",
    about: "it is verified, also near its end; an operator frees it, and another client acquires it",
    endpoints: 1,
    clients: [
      inOrder(verifying(100, 350)),
      inOrder(pass(390, 400, 420), (actor) => freeAs(actor, "a"), hold(440, 40)),
    ],
    bounds: usual,
  },
  {
    name: "an operator frees a lock",
    about: "its holder verifies it, extends it, and another client acquires it",
    endpoints: 3,
    loses: true,
    clients: [
      async (actor) => {
        const held = await actor.acquire("a", options);
        await actor.until(100);
        if (held) await actor.verify(held);
        await actor.until(250);
        if (held) await actor.extend(held, 400);
        if (held) await actor.release(held);
      },
      inOrder(
        (actor) => actor.until(50),
        (actor) => freeAs(actor, "a"),
        hold(170, 40),
      ),
    ],
    bounds: usual,
  },
  {
    name: "a freed lock that extends itself",
    about: "an operator frees it while it is used; requests may be executed again later",
    endpoints: 1,
    dialect: "redis",
    repeats: true,
    clients: [
      (actor) => actor.using("a", 500, { ...options, backoff: () => 30 }),
      at([100], (actor) => freeAs(actor, "a")),
    ],
    bounds: usual,
  },
  {
    name: "a lock with a deadline",
    about: "its ttl is longer than the time until then; another client tries after it",
    endpoints: 1,
    clients: [
      async (actor) => {
        const deadline = actor.client.now() + 150;
        const held = await actor.acquire("a", { ...options, deadline });
        if (held) actor.leave(held);
        await actor.until(300);
      },
      inOrder(hold(160, 40), hold(398, 40)),
    ],
    bounds: usual,
  },
  {
    name: "a letter",
    about: "a lock is handed over, and its receiver relies on it as long as it may; a third client tries",
    endpoints: 1,
    clients: [
      async (actor) => {
        const held = await actor.acquire("a", options);
        await actor.until(100);
        await sendLock(actor, held, 1);
      },
      async (actor) => {
        const held = await receiveLock(actor, { immediate: true });
        if (held) actor.leave(held);
        await actor.until(600);
      },
      inOrder(pass(200), hold(398, 40)),
    ],
    bounds: usual,
  },
  {
    name: "inspections",
    about: "a lock is inspected while it is held, and while two try at once; messages are lost, not late",
    endpoints: 3,
    loses: true,
    given: "1:lose:p0.2,2:lose:p0.3",
    clients: [hold(0, 200), hold(10, 150), looking(20, 120)],
    bounds: usual,
  },
  {
    name: "a key is forgotten",
    about:
      "while its run is under way, and when its result is stored; it runs again; messages are lost, not late",
    endpoints: 3,
    loses: true,
    clients: [
      inOrder(
        (actor) => run(actor, 150),
        at([700], (actor) => run(actor, 40)),
      ),
      at([100, 300, 1_000], (actor) => forgetAs(actor, "k")),
    ],
    bounds: usual,
  },
  {
    name: "a key is forgotten at one endpoint",
    about: "the same; what is late may come after it, or be executed again",
    endpoints: 1,
    repeats: true,
    clients: [
      inOrder(
        (actor) => run(actor, 150),
        at([300], (actor) => run(actor, 40)),
      ),
      at([100, 200], (actor) => forgetAs(actor, "k")),
    ],
    bounds: straightInTests,
  },
  {
    name: "counted runs",
    about: "handlers hang until their lease is over, and the third run of two must not begin",
    endpoints: 1,
    dialect: "redis",
    clients: [
      (actor) => run(actor, 1_600, { maxAttempts: 2, maxHold: 400 }),
      inOrder(at([450], (actor) => run(actor, 1_000, { maxAttempts: 2, maxHold: 400 }))),
      at([900], (actor) => run(actor, 40, { maxAttempts: 2 })),
    ],
    bounds: straightInTests,
  },
  {
    name: "counted runs on three endpoints",
    about: "the first handler fails, which clears the count, and two hang; messages are lost, not late",
    endpoints: 3,
    loses: true,
    clients: [
      inOrder(
        (actor) => run(actor, 40, { maxAttempts: 2, fails: true }),
        (actor) => run(actor, 1_600, { maxAttempts: 2, maxHold: 400 }),
      ),
      at([700], (actor) => run(actor, 1_000, { maxAttempts: 2, maxHold: 400 })),
      at([1_250], (actor) => run(actor, 40, { maxAttempts: 2 })),
    ],
    bounds: straightInTests,
  },
];
