import { freeze } from "./events.ts";
import { at, inOrder, large, straightInTests, usual } from "./programs.ts";
import { run } from "./runs.ts";
import type { Scenario } from "./scenario.ts";

// Idempotent runs.

export const runScenarios: readonly Scenario[] = [
  {
    name: "runs of a key",
    about: "a run is late to begin or to complete, and others begin, wait for it, or get its result",
    endpoints: 1,
    dialect: "redis",
    events: [freeze(0)],
    clients: [
      (actor) => run(actor, 250),
      async (actor) => {
        await run(actor, 40, { wait: 100 });
        await actor.until(600);
        await run(actor, 40);
      },
    ],
    bounds: usual,
  },
  {
    name: "runs that fail",
    about: "a handler fails while its lease may be over, and another run completes",
    endpoints: 1,
    dialect: "redis",
    repeats: true,
    events: [freeze(0)],
    clients: [(actor) => run(actor, 100, { fails: true }), at([150, 700], (actor) => run(actor, 40))],
    bounds: usual,
  },
  {
    name: "runs on three endpoints",
    about: "two runs of a key begin at once, and one comes later",
    endpoints: 3,
    clients: [
      (actor) => run(actor, 40),
      async (actor) => {
        await run(actor, 40, { wait: 100 });
        await actor.until(600);
        await run(actor, 40);
      },
    ],
    bounds: large,
  },
  {
    name: "runs and lost messages",
    about: "results reach a minority only; messages are lost, not late",
    endpoints: 3,
    loses: true,
    events: [freeze(0)],
    clients: [(actor) => run(actor, 40), at([600, 1_200], (actor) => run(actor, 40))],
    bounds: usual,
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
      (actor) => run(actor, 40),
      at([600], (actor) => run(actor, 40)),
      at([590, 1_200], (actor) => run(actor, 40)),
    ],
    bounds: straightInTests,
  },
  {
    name: "a handler hangs",
    about:
      "its claim ends soon after its deadline, and another run is served: its lease is short, for what it claims late",
    endpoints: 1,
    dialect: "redis",
    clients: [
      (actor) => run(actor, 1_500, { deadline: actor.client.now() + 100 }),
      at([450], (actor) => run(actor, 40, { lease: 200, wait: 1_500, isServed: true })),
    ],
    bounds: usual,
  },
  {
    name: "results that cannot be stored",
    about: "one has no JSON, another is too large for the endpoint; both keys come again",
    endpoints: 1,
    dialect: "redis",
    clients: [
      inOrder(
        (actor) => run(actor, 40, { result: "without JSON" }),
        at([300], (actor) => run(actor, 40, { key: "large" })),
      ),
      inOrder(
        (actor) => run(actor, 60, { key: "large", result: "too large" }),
        at([300], (actor) => run(actor, 40)),
      ),
    ],
    bounds: straightInTests,
  },
];
