import { CountDownLatch, CyclicBarrier } from "../../../src/sync/index.ts";
import type { Actor } from "./actor.ts";
import { large, oneTry, straightInTests, usual } from "./programs.ts";
import type { Program, Scenario } from "./scenario.ts";

// Latches and barriers.

const name = "l";

/** Arrives at a latch of two, or only looks where there is no id. */
async function arrive(actor: Actor, id?: string): Promise<void> {
  const { latches, world } = actor.stage;
  const by = actor.client.name;
  const call = { name, count: 2, by, invoked: world.now };
  if (id !== undefined) latches.begins(name, id);
  const latch = new CountDownLatch(actor.redlock, name, { count: 2, ...oneTry });
  const state = await actor.call({
    what: id === undefined ? "look at the latch" : `arrive as ${id}`,
    bound: 1_000,
    codes: ["NO_QUORUM"],
    run: () => (id === undefined ? latch.inspect() : latch.arrive(id)),
  });
  if (!state) return;
  latches.returned(call, state.open);
  if (id !== undefined) latches.arrived(call, id);
}

/** Passes a barrier of two, again and again. It pauses for so many ms. */
function meet(start: number, times: number, pause = 60): Program {
  return async (actor) => {
    const { meeting } = actor.stage;
    const by = actor.client.name;
    meeting.joins(by);
    const barrier = new CyclicBarrier(actor.redlock, "b", {
      parties: 2,
      ...oneTry,
      wait: 600,
      backoff: () => pause,
    });
    await actor.until(start);
    for (let tries = 0, passed = 0; tries < 3 && passed < times; tries += 1) {
      meeting.begins(by);
      const generation = await actor.call({
        what: "meet at the barrier",
        bound: 2_000,
        codes: ["ARRIVALS_MISSING", "NO_QUORUM"],
        run: () => barrier.arriveAndWait(by),
      });
      if (generation === undefined) continue;
      passed += 1;
      meeting.passed(by, generation);
    }
  };
}

export const arrivalScenarios: readonly Scenario[] = [
  {
    name: "a latch",
    about: "one party arrives twice, the other once, and both look; messages are lost, not late",
    endpoints: 3,
    loses: true,
    clients: [
      async (actor) => {
        await arrive(actor, "x");
        await arrive(actor, "x");
        await actor.until(500);
        await arrive(actor);
      },
      async (actor) => {
        await actor.until(250);
        await arrive(actor, "y");
        await actor.until(750);
        await arrive(actor);
      },
    ],
    bounds: usual,
  },
  {
    name: "a latch on one endpoint",
    about: "the same, with late requests, some of them executed again",
    endpoints: 1,
    repeats: true,
    clients: [
      async (actor) => {
        await arrive(actor, "x");
        await arrive(actor, "x");
      },
      async (actor) => {
        await actor.until(150);
        await arrive(actor, "y");
        await arrive(actor);
      },
    ],
    bounds: usual,
  },
  {
    name: "a barrier",
    about: "two parties pass twice; messages are lost, not late",
    endpoints: 3,
    loses: true,
    clients: [meet(0, 2), meet(150, 2)],
    bounds: straightInTests,
  },
  {
    name: "a barrier on one endpoint",
    about: "the same, with late requests",
    endpoints: 1,
    clients: [meet(0, 2), meet(150, 2)],
    bounds: large,
  },
  {
    name: "a minority has moved on",
    about:
      "both have arrived, one asks rarely, and the other has moved one endpoint to the next generation; messages are lost, not late",
    endpoints: 3,
    loses: true,
    given: "25:lose:p1.8,26:lose:p1.9",
    clients: [meet(0, 2, 600), meet(150, 2)],
    bounds: straightInTests,
  },
];
