import { Idempotency, type IdempotencyOptions, type RunOptions } from "../../../src/idempotency/index.ts";
import { type Actor, boundOf, timeoutOf } from "./actor.ts";
import { freeze } from "./events.ts";
import type { Hold } from "./holds.ts";
import { at, large, oneTry, usual } from "./programs.ts";
import type { Scenario } from "./scenario.ts";

// Idempotent runs.

const key = "k";
const options = { ...oneTry, lease: 400 };

/** What differs from {@link options}; `fails`: the handler throws. */
type Own = RunOptions<string> & IdempotencyOptions & { readonly fails?: boolean };

/** Runs the key. Its handler takes so many ms. */
async function run(actor: Actor, length: number, own: Own = {}): Promise<void> {
  const { fails = false, ...given } = { ...options, ...own };
  const { runs, world, report, holds } = actor.stage;
  const { client } = actor;
  client.timeout = timeoutOf(given);
  const { value } = runs.nextValue();
  const invoked = world.time;
  const failure = new Error("the handler failed");
  const outcome = await actor.call({
    what: "run the key",
    bound: boundOf(given) + length,
    codes: ["IN_PROGRESS", "LEASE_LOST", "NO_QUORUM", "FINGERPRINT_MISMATCH"],
    isExpected: (error) => error === failure,
    run: () =>
      new Idempotency(actor.redlock, {
        retention: 10_000_000,
        onEvent: ({ type }) => {
          if (type === "executed") runs.stored(key, value, invoked);
          world.note(`${client.name} ${type}`);
        },
      }).run(key, given, async ({ token, remaining, signal }) => {
        world.note(`${client.name} runs ${value}`);
        runs.begins(key, client.name);
        const isLossReported = () => signal.aborted;
        const invariant = "one handler at a time";
        const resources = [key];
        const hold: Hold = {
          ...{ resources, invariant, holder: token, nonce: token, client, remaining, isLossReported },
          acquired: world.time,
          isOver: false,
        };
        holds.add(hold);
        world.trace(() => `${client.name} runs its handler: ${value}`);
        await actor.sleep(length);
        hold.isOver = true;
        if (fails) throw failure;
        runs.returned(key, value);
        return value;
      }),
  });
  if (outcome?.status === "replayed") runs.replayed(key, outcome.value, invoked);
  else if (outcome && outcome.value !== value) report("the routine's outcome wins", `${outcome.value}`);
}

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
    bounds: { test: 0, long: 2 },
  },
];
