import { FairLock, ReadWriteLock, ReentrantLock, type SyncOptions } from "../../../src/sync/index.ts";
import type { Actor, Held } from "./actor.ts";
import { freeze } from "./events.ts";
import { large, oneTry, usual } from "./programs.ts";
import type { Program, Scenario } from "./scenario.ts";

// Locks that readers, or the holds of one owner, have together; and the fair lock.

const options = { ...oneTry, ttl: 400 };
const catalogue = { name: "w", kind: "read-write", invariant: "a writer is alone" } as const;

function read(actor: Actor, own: SyncOptions = {}): Promise<Held | undefined> {
  const given = { ...options, ...own };
  const acquire = (redlock: Actor["redlock"]) => new ReadWriteLock(redlock, "w", given).acquireRead();
  return actor.enter({ ...catalogue, options: given, group: "readers", acquire });
}

function write(actor: Actor, own: SyncOptions = {}): Promise<Held | undefined> {
  const given = { ...options, ...own };
  const acquire = (redlock: Actor["redlock"]) => new ReadWriteLock(redlock, "w", given).acquireWrite();
  return actor.enter({ ...catalogue, options: given, acquire });
}

function own(actor: Actor, owner: string, ttl = options.ttl): Promise<Held | undefined> {
  const given = { ...options, ttl, owner };
  const acquire = (redlock: Actor["redlock"]) => new ReentrantLock(redlock, "e", given).acquire();
  const invariant = "one owner at a time";
  return actor.enter({ name: "e", kind: "reentrant", options: given, invariant, group: owner, acquire });
}

/** Waits, holds, and releases. */
function turn(acquire: typeof read, start: number, length = 40): Program {
  return async (actor) => {
    await actor.until(start);
    const held = await acquire(actor, { wait: 400 });
    await actor.sleep(length);
    if (held) await actor.release(held);
  };
}

/** Waits in the queue, holds, and releases. */
function queue(start: number): Program {
  return async (actor) => {
    await actor.until(start);
    const given = { ...options, wait: 500 };
    const acquire = (redlock: Actor["redlock"]) => new FairLock(redlock, "f", given).acquire();
    const held = await actor.enter({
      name: "f",
      kind: "fair",
      options: given,
      invariant: "mutual exclusion",
      acquire,
    });
    await actor.sleep(40);
    if (held) await actor.release(held);
  };
}

export const groupScenarios: readonly Scenario[] = [
  {
    name: "readers and a writer",
    about: "a long reader and a short one, which extends; then a writer, and a reader that meets it",
    endpoints: 1,
    repeats: true,
    clients: [
      async (actor) => {
        const held = await read(actor, { ttl: 1_000 });
        await actor.until(700);
        if (held) await actor.extend(held, 1_000);
        await actor.until(1_200);
        if (held) await actor.release(held);
      },
      async (actor) => {
        await actor.until(10);
        const held = await read(actor, { ttl: 200 });
        if (held) await actor.extend(held, 500);
        await actor.until(300);
        if (held) await actor.release(held);
        await actor.until(1_310);
        const late = await read(actor);
        if (late) await actor.release(late);
      },
      async (actor) => {
        await actor.until(320);
        const early = await write(actor);
        if (early) await actor.release(early);
        await actor.until(1_300);
        const held = await write(actor);
        await actor.sleep(40);
        if (held) await actor.release(held);
      },
    ],
    bounds: usual,
  },
  {
    name: "readers on three endpoints",
    about: "a reader, then a writer; messages are lost, not late",
    endpoints: 3,
    loses: true,
    clients: [
      async (actor) => {
        const held = await read(actor);
        await actor.sleep(40);
        if (held) await actor.release(held);
      },
      async (actor) => {
        const held = await write(actor, { wait: 100 });
        if (held) await actor.release(held);
      },
    ],
    bounds: usual,
  },
  {
    name: "holds of one owner",
    about: "an owner enters twice and leaves in another order, while another tries; requests are sent again",
    endpoints: 1,
    exactReplies: false,
    retries: true,
    clients: [
      async (actor) => {
        const long = await own(actor, "o", 1_000);
        const short = await own(actor, "o", 200);
        await actor.until(150);
        if (short) await actor.release(short);
        await actor.until(600);
        if (long) await actor.extend(long, 1_000);
        if (long) await actor.release(long);
      },
      async (actor) => {
        await actor.until(300);
        const held = await own(actor, "p");
        if (held) await actor.release(held);
      },
    ],
    bounds: usual,
  },
  {
    name: "a queue",
    about: "two wait for a fair lock, one after the other",
    endpoints: 1,
    clients: [queue(0), queue(10)],
    bounds: usual,
  },
  {
    name: "a queue of three",
    about: "the third comes when the lock is free, and the second one waits; that one may stand still",
    endpoints: 1,
    events: [freeze(1)],
    clients: [queue(0), queue(10), queue(50)],
    bounds: large,
  },
  {
    name: "a writer waits",
    about: "a reader holds, a writer waits, and another reader comes; the writer may stand still",
    endpoints: 1,
    events: [freeze(1)],
    clients: [turn(read, 0, 150), turn(write, 10), turn(read, 50)],
    bounds: large,
  },
];
