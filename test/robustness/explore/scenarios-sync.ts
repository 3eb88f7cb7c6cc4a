import { freeze } from "./events.ts";
import type { Program, Scenario } from "./scenario.ts";

// Idempotent runs, and semaphores.

const backoff = (): number => 60;
const run = { lease: 400, timeout: 100, wait: 0, backoff };
const permit = { ttl: 1_000, timeout: 100, wait: 100, backoff };

function permits(limit: number, start = 0): Program {
  return async (actor) => {
    await actor.until(start);
    const held = await actor.permit("s", limit, permit);
    await actor.sleep(40);
    if (held) await actor.release(held);
  };
}

export const syncScenarios: readonly Scenario[] = [
  {
    name: "runs of a key",
    about: "a run is late to begin or to complete, and others begin, wait for it, or get its result",
    endpoints: 1,
    dialect: "redis",
    events: [freeze(0)],
    clients: [
      (actor) => actor.run("k", 250, run),
      async (actor) => {
        await actor.run("k", 40, { ...run, wait: 100 });
        await actor.until(600);
        await actor.run("k", 40, run);
      },
    ],
    bounds: { test: 1, long: 2 },
  },
  {
    name: "runs that fail",
    about: "a handler fails while its lease may be over, and another run completes",
    endpoints: 1,
    dialect: "redis",
    repeats: true,
    events: [freeze(0)],
    clients: [
      (actor) => actor.run("k", 100, { ...run, fails: true }),
      async (actor) => {
        await actor.until(150);
        await actor.run("k", 40, run);
        await actor.until(700);
        await actor.run("k", 40, run);
      },
    ],
    bounds: { test: 1, long: 2 },
  },
  {
    name: "runs on three endpoints",
    about: "two runs of a key begin at once, and one comes later",
    endpoints: 3,
    clients: [
      (actor) => actor.run("k", 40, run),
      async (actor) => {
        await actor.run("k", 40, { ...run, wait: 100 });
        await actor.until(600);
        await actor.run("k", 40, run);
      },
    ],
    bounds: { test: 0, long: 1 },
  },
  {
    name: "runs and lost messages",
    about: "results reach a minority only; messages are lost, not late",
    endpoints: 3,
    loses: true,
    events: [freeze(0)],
    clients: [
      (actor) => actor.run("k", 40, run),
      async (actor) => {
        await actor.until(600);
        await actor.run("k", 40, run);
        await actor.until(1_200);
        await actor.run("k", 40, run);
      },
    ],
    bounds: { test: 1, long: 2 },
  },
  {
    name: "a minority's result",
    about:
      "a run stored its result on one endpoint, and stands still; two others begin; messages are lost, not late",
    endpoints: 3,
    loses: true,
    events: [freeze(0)],
    given: "8:lose:p0.5,9:lose:p0.6,10:freeze:p0",
    clients: [
      (actor) => actor.run("k", 40, run),
      async (actor) => {
        await actor.until(600);
        await actor.run("k", 40, run);
      },
      async (actor) => {
        await actor.until(590);
        await actor.run("k", 40, run);
        await actor.until(1_200);
        await actor.run("k", 40, run);
      },
    ],
    bounds: { test: 0, long: 2 },
  },
  {
    name: "a semaphore of 1",
    about: "two clients and one permit",
    endpoints: 3,
    clients: [permits(1), permits(1)],
    bounds: { test: 0, long: 1 },
  },
  {
    name: "a semaphore of 2",
    about: "three clients and two permits",
    endpoints: 3,
    clients: [permits(2), permits(2), permits(2)],
    bounds: { test: 0, long: 1 },
  },
  {
    name: "three pairs of endpoints",
    about: "three clients and two permits, where the first two clients meet at one endpoint only",
    endpoints: 3,
    loses: true,
    given: "2:lose:p0.3,5:lose:p1.1",
    clients: [permits(2), permits(2), permits(2)],
    bounds: { test: 1, long: 2 },
  },
  {
    name: "a wrong limit on one endpoint",
    about: "a client with another limit has reached a minority",
    endpoints: 3,
    loses: true,
    given: "1:lose:p0.2,2:lose:p0.3",
    clients: [permits(1), permits(2, 300)],
    bounds: { test: 1, long: 2 },
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
    bounds: { test: 1, long: 2 },
  },
];
