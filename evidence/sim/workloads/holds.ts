import { type Permit, ReadWriteLock, ReentrantLock, Semaphore } from "../../../src/sync/index.ts";
import type { Hold } from "../checks/holds.ts";
import type { Draw } from "../draw.ts";
import { keyOf } from "../field.ts";
import { invariants } from "../world/invariants.ts";
import type { Process } from "../world/process.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { type AcquiredHandle, type HeldHandle, recordHold } from "./handles.ts";
import { HoldWorkload, type Kind } from "./hold.ts";

const writersKey = keyOf("writers", "catalogue");

const reading = { counted: "reading", group: "readers" };
const writing = { counted: "writing" };

/** Readers and writers of one lock. */
export class ReadWriteWorkload extends HoldWorkload {
  readonly blockingKeys = ["redlock:read-write:*", "redlock:writers:*"];
  /** The probes that have yet to write. */
  readonly #writers = new Set<Process>();
  /** The longest pause and timeout of any writer so far, in ms. */
  #longestPause = 0;
  #longestTimeout = 0;

  constructor(shared: SharedContext) {
    super(shared, "read-write", "catalogue", "a writer is alone");
  }

  perform(actor: Actor): Promise<void> {
    const reads = actor.draw.chance(0.6);
    const what = reads ? "read" : "write";
    const lock = new ReadWriteLock(actor.redlock, this.name);
    return this.use(actor, {
      ...(reads ? reading : writing),
      what,
      rounds: 5,
      // A writer must ask before its announcement expires.
      longestPause: reads ? undefined : 1_000,
      acquire: (how, given) => {
        if (how === "acquire" && !reads) this.#writes(given.backoff.max, given.timeout);
        return lock[`${how}${reads ? "Read" : "Write"}`](given);
      },
      ended: () => this.#checkAnnouncements(),
    });
  }

  /** Every second process writes once. The others read, again and again, until all writers have been served. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, draw, world } = actor;
    const writes = world.processes.indexOf(process) % 2 === 0;
    if (writes) this.#writers.add(process);
    await actor.sleep(0);
    const lock = new ReadWriteLock(actor.redlock, this.name, { ttl: 5_000, wait: 10 * bound });
    do {
      const isServed = await this.serve(actor, bound, {
        what: writes ? "write" : "read",
        run: () => {
          this.#writes(1_000, 1_000);
          return writes ? lock.acquireWrite() : lock.acquireRead();
        },
        ...(writes ? writing : reading),
        length: () => (writes ? draw.between(1, 30) : draw.between(300, 600)),
      });
      if (!isServed) return;
      if (writes) this.#writers.delete(process);
    } while (!writes && [...this.#writers].some(({ alive }) => alive));
  }

  #writes(pause: number, timeout: number): void {
    this.#longestPause = Math.max(this.#longestPause, pause);
    this.#longestTimeout = Math.max(this.#longestTimeout, timeout);
  }

  /** A writer that no longer asks keeps readers out for a pause and its requests' timeouts, not for its ttl. */
  #checkAnnouncements(): void {
    const { world, wire } = this.shared;
    const most = Math.max(500, 1.5 * this.#longestPause + 2 * this.#longestTimeout);
    for (const server of world.servers) {
      const now = Math.floor(server.time());
      const words = server.execute(["ZRANGE", writersKey, 0, -1, "WITHSCORES"]) as string[];
      const ids = words.filter((_, index) => index % 2 === 0 && Number(words[index + 1]) > now);
      for (const id of ids) {
        const { process, at } = wire.announcedWriter(server, writersKey, id)!;
        const what = () =>
          `${process.name} is announced at ${server.name} since ${at.toFixed()}, for more than ${most.toFixed()} ms`;
        world.check("the dead do not keep others out", world.now - at <= 1.005 * most + 2, what);
      }
    }
  }
}

/** Owners, some of them in several processes, that acquire one lock, and acquire it again while they hold it. */
export class ReentrantWorkload extends HoldWorkload {
  readonly blockingKeys = ["redlock:reentrant:*"];

  constructor(shared: SharedContext) {
    super(shared, "reentrant", "account", "one owner at a time");
  }

  perform(actor: Actor): Promise<void> {
    return this.#enter(actor, actor.draw.pick([actor.process.name, "owner-1", "owner-2"]), 0);
  }

  async probe(actor: Actor, bound: number): Promise<void> {
    const owner = actor.process.name;
    const lock = new ReentrantLock(actor.redlock, this.name, { owner, ttl: 5_000, wait: 10 * bound });
    await this.serve(actor, bound, {
      what: "enter",
      run: () => lock.acquire(),
      counted: "entered",
      group: owner,
    });
  }

  /** Acquires as an owner, and perhaps once more before the release. */
  #enter(actor: Actor, owner: string, depth: number): Promise<void> {
    const lock = new ReentrantLock(actor.redlock, this.name, { owner });
    return this.use(actor, {
      counted: "entered",
      group: owner,
      what: `enter as ${owner}`,
      rounds: 4,
      acquire: (how, given) => lock[how](given),
      inside: async () => {
        if (depth === 2 || !actor.draw.chance(0.4)) return;
        this.shared.world.count("entered again");
        await this.#enter(actor, owner, depth + 1);
      },
    });
  }
}

const permit = (limit: number) => ({ counted: "permit", limit });

/** Permits of one semaphore. In some worlds a part of the processes have another limit configured. */
export class SemaphoreWorkload extends HoldWorkload<Permit> {
  readonly blockingKeys = ["redlock:slot:*", "redlock:limit:*"];
  readonly #limit: number;
  /** The share of acquires with a larger limit, as during a deployment. */
  readonly #larger: number;
  /** Holds of permits, and the limit that their semaphore was created with. */
  readonly #issued: { readonly hold: Hold; readonly limit: number }[] = [];

  constructor(shared: SharedContext, draw: Draw) {
    super(shared, "limit", "pool", "one holder per slot");
    this.#limit = draw.integer(1, Math.min(3, Math.max(1, shared.scenario.processes - 1)));
    this.#larger = draw.chance(0.5) ? 0.3 : 0;
  }

  perform(actor: Actor): Promise<void> {
    const limit = actor.draw.chance(this.#larger) ? this.#limit + 1 : this.#limit;
    const semaphore = new Semaphore(actor.redlock, this.name, { limit });
    return this.use(actor, {
      ...permit(limit),
      what: `acquire a permit of ${limit}`,
      // Each slot may be tried once more when the waiting is over.
      rounds: limit + 4,
      acquire: (how, given, note) => semaphore[how]({ ...given, note }),
    });
  }

  async probe(actor: Actor, bound: number): Promise<void> {
    const limit = this.#limit;
    const semaphore = new Semaphore(actor.redlock, this.name, { limit });
    await this.serve(actor, bound, {
      what: "acquire a permit",
      run: () => semaphore.acquire({ ttl: 5_000, wait: 10 * bound }),
      ...permit(limit),
    });
  }

  /** Records a permit, and checks its slot and the permits that are valid beside it. */
  protected override record(
    actor: Actor,
    acquired: AcquiredHandle<Permit>,
    { counted, limit = 0 }: Kind,
  ): HeldHandle {
    const { world } = this.shared;
    const { slot } = acquired.handle;
    const key = keyOf(`slot:${slot}`, this.name);
    const nonce = actor.wire.lastRound(actor.process, key)!;
    const resources = [`${this.name}#${slot}`];
    const held = recordHold(actor, { ...acquired, keys: [key], resources, nonce, holds: this.holds });
    world.count(counted);
    const beside = this.#issued.filter(({ hold }) => hold.ended === undefined && hold.remaining() > 0);
    this.#issued.push({ hold: held.hold, limit });
    const most = Math.max(limit, ...beside.map((other) => other.limit));
    const regrown = beside.some(({ hold }) => hold.extensions.regrown);
    world.check(
      "permits within the limit",
      slot < limit && beside.length + 1 <= most,
      () => `${actor.process.name} has slot ${slot} of ${limit} beside ${beside.length} of ${most}`,
      regrown ? [...invariants["permits within the limit"], "single execution"] : undefined,
    );
    return held;
  }
}
