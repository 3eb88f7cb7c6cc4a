import type { Lock } from "../../src/index.ts";
import type { AcquireOptions } from "../../src/lock/options.ts";
import type { Actor } from "./actor.ts";
import { type Hold, newHold } from "./holds.ts";
import type { Play, Stage } from "./stage.ts";

// The pictures of the documentation: the real library, in plays that are performed in virtual time.

const resource = "order:7";

/** A lock that a client has acquired. */
interface Acquired {
  readonly lock: Lock;
  readonly hold: Hold;
}

/** Acquires the resource, as the client's own code would. @returns undefined: somebody else has it */
async function acquire(actor: Actor, options: AcquireOptions): Promise<Acquired | undefined> {
  const { world, process, calls, redlock, locks } = actor;
  const { ttl = 30_000, driftFactor = 0.01, wait = 0 } = options;
  const invoked = world.now;
  process.timeout = ttl;
  const outcome = await calls.make(process, {
    what: `acquire ${resource}`,
    bound: wait + 3 * ttl,
    codes: ["LOCK_HELD", "NO_QUORUM"],
    run: () => redlock.acquire(resource, options),
  });
  if ("error" in outcome) return undefined;
  const lock = outcome.value;
  const hold = newHold({
    resources: [resource],
    nonce: lock.token,
    process,
    remaining: () => lock.remaining(),
    lossReported: undefined,
    invoked,
    acquired: world.now,
    fence: lock.fence,
    drift: () => ttl * driftFactor + 2,
  });
  locks.add(hold);
  return { lock, hold };
}

async function release({ process, calls, locks }: Actor, { lock, hold }: Acquired): Promise<void> {
  locks.end(hold);
  const run = () => lock.release();
  await calls.make(process, { what: "release", bound: 1_000, codes: ["NO_QUORUM"], run });
}

/** An endpoint that nobody reaches. */
function stop({ world, recorder }: Stage, index: number): void {
  const server = world.servers[index]!;
  server.up = false;
  recorder.fault({ name: "down", endpoint: server.name });
}

const oneDown: Play = {
  title:
    "One of three endpoints is down. A acquires the lock from the other two, which are a quorum; B is refused there. After A's release, B acquires it.",
  seed: 3,
  clients: ["client A", "client B"],
  endpoints: 3,
  latency: [4, 9],
  length: 160,
  act: async (stage) => {
    const [a, b] = stage.actors as [Actor, Actor];
    stop(stage, 2);
    const options = { ttl: 400, timeout: 100, wait: 0 };
    await a.sleep(4);
    const first = await acquire(a, options);
    const working = a.sleep(56);
    await b.sleep(8);
    await acquire(b, options);
    await working;
    if (first) await release(a, first);
    const second = await acquire(b, options);
    await b.sleep(15);
    if (second) await release(b, second);
  },
};

const evenSplit: Play = {
  title:
    "An even split: A and B get one endpoint each, and neither has a quorum. Both roll back, pause for a random time and try again: A is first, B waits for it.",
  seed: 1,
  clients: ["client A", "client B"],
  endpoints: 3,
  latency: [4, 12],
  length: 170,
  act: async (stage) => {
    const [a, b] = stage.actors as [Actor, Actor];
    stop(stage, 2);
    const options = { ttl: 400, timeout: 100, wait: 400, backoff: { min: 10, max: 40 } };
    const play = async (actor: Actor) => {
      const acquired = await acquire(actor, options);
      await actor.sleep(25);
      if (acquired) await release(actor, acquired);
    };
    await Promise.all([a.sleep(2).then(() => play(a)), b.sleep(2).then(() => play(b))]);
  },
};

const expiredOnArrival: Play = {
  title:
    "Expired on arrival: the first round's answers are so late that no validity is left, and it is rolled back. The second round is fast; its client stops relying on the lock before an endpoint forgets it.",
  seed: 2,
  clients: ["client A"],
  endpoints: 3,
  latency: [4, 7],
  length: 245,
  act: async ({ world, recorder, actors, at }) => {
    const [a] = actors as [Actor];
    for (const server of world.servers) {
      server.slowness = 40;
      recorder.fault({ name: "slow", endpoint: server.name });
    }
    at(60, () => {
      for (const server of world.servers) {
        server.slowness = 0;
        recorder.healed({ name: "slow", endpoint: server.name });
      }
    });
    await a.sleep(2);
    await acquire(a, { ttl: 100, timeout: 100, wait: 300, driftFactor: 0.1, backoff: { min: 10, max: 20 } });
  },
};

const lateWriter: Play = {
  title:
    "A is paused in the middle of its work, and its lock expires. B acquires the lock, with a larger fence. When A goes on, the database refuses its late write: it has seen B's fence.",
  seed: 29,
  clients: ["client A", "client B"],
  endpoints: 3,
  latency: [3, 7],
  length: 330,
  act: async ({ recorder, actors, at }) => {
    const [a, b] = actors as [Actor, Actor];
    const options = { ttl: 120, timeout: 100, wait: 300, fencing: true, backoff: { min: 15, max: 30 } };
    at(52, () => {
      a.process.pause(false);
      recorder.fault({ name: "paused", client: a.process.name });
    });
    at(260, () => {
      a.process.resume();
      recorder.healed({ name: "paused", client: a.process.name });
    });
    const work = async (actor: Actor) => {
      const acquired = await acquire(actor, options);
      const fence = acquired?.lock.fence;
      if (!acquired || fence === undefined) throw new Error("nothing acquired");
      const { process, ledger, calls } = actor;
      const step = <Value>(what: string, run: () => Promise<Value>) =>
        calls.make(process, { what, bound: 300, codes: [], run });
      await step("claim", () => ledger.open(process, resource, fence));
      await actor.sleep(25);
      await step("write", () => ledger.write(process, resource, fence, fence));
      if (acquired.lock.remaining() > 0) await release(actor, acquired);
    };
    await Promise.all([a.sleep(2).then(() => work(a)), b.sleep(90).then(() => work(b))]);
  },
};

/** By file in docs/images. */
export const plays: Readonly<Record<string, Play>> = {
  "acquire-one-down.svg": oneDown,
  "even-split.svg": evenSplit,
  "expired-on-arrival.svg": expiredOnArrival,
  "late-writer.svg": lateWriter,
};
