import { isRedlockError } from "../../../src/index.ts";
import { CountDownLatch, type LatchState } from "../../../src/sync/index.ts";
import { type Actor, drawOptions, type Stage } from "./actor.ts";
import type { Draw } from "./draw.ts";
import type { Workload } from "./synchronizers.ts";

/** What is known of one latch. */
interface Story {
  /** Who has begun to arrive, and who was told that it has. */
  readonly begun: Set<string>;
  readonly arrived: Set<string>;
  /** Since when it is known to be open. */
  open: number | undefined;
  /** Since when all have arrived, and every one of them knows. */
  complete: number | undefined;
}

/** Latches, one after another, at which processes arrive under ids that others use as well. */
export function latchWorkload({ world, scenario }: Stage, draw: Draw): Workload {
  const count = draw.integer(1, 4);
  const stories = new Map<string, Story>();
  const together = draw.chance(0.6);
  let parties = 0;

  function storyOf(name: string): Story {
    let story = stories.get(name);
    if (!story) {
      story = { begun: new Set(), arrived: new Set(), open: undefined, complete: undefined };
      stories.set(name, story);
    }
    return story;
  }

  /** Looks at what a call was told. */
  function judge(name: string, needed: number, state: LatchState, invoked: number, by: string): void {
    const story = storyOf(name);
    world.count(state.open ? "latch open" : "latch closed");
    if (state.open) {
      if (story.begun.size < needed) {
        world.violate(
          "a latch opens with the last",
          `${by}: ${name} is open with ${[...story.begun]} of ${needed}`,
        );
      }
      story.open ??= world.now;
      return;
    }
    if (story.open !== undefined && story.open < invoked) {
      world.violate(
        "an open latch stays open",
        `${by}: ${name} is closed, it was open at ${story.open.toFixed()}`,
      );
    }
    if (story.complete !== undefined && story.complete < invoked) {
      world.violate(
        "arrivals count",
        `${by}: ${name} is closed, all had arrived at ${story.complete.toFixed()}`,
      );
    }
  }

  /** One was told that it has arrived. Of all that were, somebody must have been told that the latch is open. */
  function arrive(name: string, needed: number, id: string): void {
    const story = storyOf(name);
    story.arrived.add(id);
    if (story.arrived.size < needed) return;
    story.complete ??= world.now;
    if (story.open !== undefined) return;
    world.violate("arrivals count", `all have arrived at ${name}, and nobody was told that it is open`);
  }

  async function perform(actor: Actor): Promise<void> {
    const { process, redlock, calls } = actor;
    const { wait, timeout, backoff, deadline, ttl } = drawOptions(actor);
    const name = `parts-${Math.floor(world.now / (4 * scenario.ttl)) - (actor.draw.chance(0.3) ? 1 : 0)}`;
    const abort = actor.draw.chance(0.1) ? new AbortController() : undefined;
    if (abort) process.timer(actor.draw.between(0, ttl), () => abort.abort(new Error("given up")));
    const options = { wait, timeout, backoff, deadline, signal: abort?.signal };
    const latch = new CountDownLatch(redlock, name, { count });
    const id = `part ${actor.draw.integer(1, count)}`;
    const how = actor.draw.pick(["arrive", "arrive", "arrive", "inspect", "wait"] as const);
    if (how === "arrive") storyOf(name).begun.add(id);
    const invoked = world.now;
    const outcome = await calls.make(
      process,
      `${how} ${name} ${how === "arrive" ? id : ""}`,
      wait + 8 * timeout,
      ["ARRIVALS_MISSING", "NO_QUORUM"],
      async () => {
        if (how === "arrive") return latch.arrive(id, options);
        if (how === "inspect") return latch.inspect(options);
        await latch.wait(options);
        return { open: true, arrived: count, remaining: 0 };
      },
      (error) => error === abort?.signal.reason,
    );
    if ("error" in outcome) {
      world.count(`latch: ${isRedlockError(outcome.error) ? outcome.error.code : "aborted"}`);
      return;
    }
    judge(name, count, outcome.value, invoked, process.name);
    if (how === "arrive") arrive(name, count, id);
  }

  /** All arrive at a new one, and wait until it opens. */
  async function turn(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, calls } = actor;
    parties += 1;
    // Those that come at the same moment may each meet others at other endpoints.
    await actor.sleep(together ? 0 : actor.draw.between(0, 50));
    const name = "turn";
    const latch = new CountDownLatch(redlock, name, { count: parties, wait: 10 * bound });
    storyOf(name).begun.add(process.name);
    const invoked = world.now;
    const outcome = await calls.make(process, "turn at the latch", bound, [], async () => {
      const state = await latch.arrive(process.name);
      judge(name, parties, state, invoked, process.name);
      arrive(name, parties, process.name);
      await latch.wait();
    });
    if ("value" in outcome)
      judge(name, parties, { open: true, arrived: parties, remaining: 0 }, invoked, process.name);
  }

  return { perform, turn, leftovers: [], look: () => undefined, conclude: () => undefined };
}
