import { type Lock, Redlock } from "../../../src/index.ts";
import type { AcquireOptions } from "../../../src/lock/options.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { sleep } from "../../../src/runtime.ts";
import {
  LimitMismatchError,
  Semaphore,
  type Hold as SyncHold,
  type SyncOptions,
} from "../../../src/sync/index.ts";
import { type SharedContext, type Actor as Simulated, timeOf } from "../sim/actor.ts";
import type { Invariant } from "../sim/assumptions.ts";
import type { Call } from "../sim/calls.ts";
import type { DebounceHistories } from "../sim/debounce-histories.ts";
import { checkRefusal, extend, type HeldHandle, recordHold, release, verify } from "../sim/handles.ts";
import { recordLock } from "../sim/held-lock.ts";
import type { Holds } from "../sim/holds.ts";
import { createHttpLink } from "../sim/http-link.ts";
import type { LatchHistories } from "../sim/latch-histories.ts";
import { createLink } from "../sim/link.ts";
import type { Meeting } from "../sim/meeting.ts";
import type { OnceHistories } from "../sim/once-histories.ts";
import type { RunHistories } from "../sim/run-histories.ts";
import { Choice, type Client } from "./client.ts";
import type { Watch } from "./watch.ts";
import type { World } from "./world.ts";

/** What all actors of a world share. */
export interface Stage {
  readonly world: World;
  readonly shared: SharedContext;
  readonly watch: Watch;
  readonly runs: RunHistories;
  readonly latches: LatchHistories;
  readonly meeting: Meeting;
  readonly once: OnceHistories;
  readonly debounces: DebounceHistories;
  readonly actors: Actor[];
  /** What must not overlap, by the invariant that it would violate. */
  holdsOf(invariant: Invariant): Holds;
}

/** A handle together with what the checks know of its hold. */
export interface Held<Any extends HeldHandle["handle"] = HeldHandle["handle"]> extends HeldHandle {
  readonly handle: Any;
}

/** How a synchronizer's handle is acquired, and what it excludes. */
interface Entry {
  /** The name, and the kind of its key. */
  readonly name: string;
  readonly kind: string;
  readonly options: SyncOptions;
  readonly invariant: Invariant;
  readonly group?: string | undefined;
  readonly acquire: (redlock: Redlock) => Promise<SyncHold>;
}

/** One client of a scenario: it calls the library, and what the calls return is checked. Its methods never reject. */
export class Actor {
  readonly client: Client;
  readonly redlock: Redlock;
  readonly stage: Stage;
  /** The same, for the simulator's checks. */
  readonly simulated: Simulated;
  readonly #inbox: string[] = [];
  #isWaitingFor: ((text: string) => void) | undefined;

  constructor(stage: Stage, client: Client) {
    const { world, shared } = stage;
    const { wire, scenario } = shared;
    this.stage = stage;
    this.client = client;
    const endpoints = world.servers.map((server) => {
      const carry = (message: Parameters<World["send"]>[2]) => world.send(client, server, message);
      const way = { world, wire, process: client, server, carrier: { carry } };
      const exactReplies = scenario.exactReplies[0] === true;
      return scenario.http ? createHttpLink(way) : createLink({ ...way, exactReplies });
    });
    this.redlock = new Redlock({ endpoints, runtime: client });
    const { redlock } = this;
    this.simulated = {
      ...shared,
      process: client,
      draw: new Choice(),
      redlock,
      sleep: (ms) => this.sleep(ms),
    };
  }

  sleep(ms: number): Promise<void> {
    return sleep(this.client, ms);
  }

  /** Waits until a time, in ms since the world began. */
  async until(time: number): Promise<void> {
    const { now } = this.stage.world;
    if (time > now) await this.sleep(time - now);
  }

  /** A signal that a schedule may abort from now on. */
  abortable(): AbortSignal {
    this.client.abortable = new AbortController();
    return this.client.abortable.signal;
  }

  /** Sends a text to another client. */
  post(to: number, text: string): void {
    const other = this.stage.actors[to]!;
    this.stage.world.post(this.client, other.client, text, () => other.#got(text));
  }

  /** The next text from another client. */
  receive(): Promise<string> {
    const first = this.#inbox.shift();
    if (first !== undefined) return Promise.resolve(first);
    return new Promise((resolve) => {
      this.#isWaitingFor = resolve;
    });
  }

  #got(text: string): void {
    if (this.#isWaitingFor) this.#isWaitingFor(text);
    else this.#inbox.push(text);
    this.#isWaitingFor = undefined;
  }

  /** Acquires a lock. Undefined: it was held, or too few endpoints answered. */
  async acquire(
    resource: string | readonly string[],
    options: AcquireOptions,
  ): Promise<Held<Lock> | undefined> {
    this.client.timeout = timeoutOf(options);
    const invoked = this.stage.world.moment();
    const limit = timeOf(this.simulated, options.deadline);
    const [first] = [resource].flat();
    const lock = await this.call(
      {
        what: `acquire ${resource}`,
        bound: boundOf(options),
        codes: ["LOCK_HELD", "NO_QUORUM"],
        run: () => this.redlock.acquire(resource, options),
        isExpected: (error) => options.signal?.aborted === true && error === options.signal.reason,
      },
      keyOf("redlock", "lock", first!),
    );
    return lock && this.got(lock, recordLock(this.simulated, lock, { invoked, limit }, true));
  }

  /** Acquires a permit, or not. */
  async permit(name: string, limit: number, options: AcquireOptions): Promise<Held | undefined> {
    const { ttl, wait, timeout, backoff } = options;
    const { world, holdsOf } = this.stage;
    this.client.timeout = timeoutOf(options);
    const invoked = world.moment();
    const permit = await this.call(
      {
        what: `acquire a permit of ${limit}`,
        bound: boundOf(options) * limit,
        codes: ["LOCK_HELD", "NO_QUORUM", "LIMIT_MISMATCH"],
        run: () => new Semaphore(this.redlock, name, { limit }).acquire({ ttl, wait, timeout, backoff }),
      },
      keyOf("redlock", "limit", name),
    );
    if (!permit) return undefined;
    const key = keyOf("redlock", `slot:${permit.slot}`, name);
    const nonce = this.stage.shared.wire.lastRound(this.client, key)!;
    const holds = holdsOf("one holder per slot");
    const taken = holds.all.filter(({ ended }) => ended === undefined).length + 1;
    world.check("permits within the limit", taken <= limit, () => `${taken} permits of ${limit}`);
    const resources = [`${name} ${permit.slot}`];
    return this.got(
      permit,
      recordHold(this.simulated, {
        handle: permit,
        keys: [key],
        resources,
        nonce,
        invoked,
        holds,
        listens: true,
      }),
    );
  }

  /** Acquires the hold of a synchronizer, or not. */
  async enter({ name, kind, options, invariant, group, acquire }: Entry): Promise<Held | undefined> {
    const { ttl, wait, timeout } = options;
    const { world, holdsOf, shared } = this.stage;
    this.client.timeout = timeoutOf({ ttl, timeout });
    const invoked = world.moment();
    const key = keyOf("redlock", kind, name);
    const handle = await this.call(
      {
        what: `acquire ${name}`,
        bound: 5 * boundOf({ ttl, wait, timeout }),
        codes: ["LOCK_HELD", "NO_QUORUM"],
        run: () => acquire(this.redlock),
      },
      key,
    );
    if (!handle) return undefined;
    const nonce = shared.wire.lastRound(this.client, key)!;
    const holds = holdsOf(invariant);
    return this.got(
      handle,
      recordHold(this.simulated, { handle, resources: [name], nonce, group, invoked, holds, listens: true }),
    );
  }

  /** A handle was returned. */
  got<Any extends HeldHandle["handle"]>(handle: Any, held: HeldHandle): Held<Any> {
    const { world } = this.stage;
    const { resources, nonce, fence } = held.hold;
    world.note(`${this.client.name} got ${resources} ${nonce} ${fence}`);
    world.trace(() => `${this.client.name} holds ${resources} for ${handle.remaining()} ms, fence ${fence}`);
    return { ...held, handle };
  }

  /** Extends a hold. */
  extend(held: Held, ttl: number): Promise<void> {
    return extend(this.simulated, held, ttl, 1_000);
  }

  /** Releases a hold. */
  async release(held: Held): Promise<void> {
    this.stage.world.note(`${this.client.name} releases ${held.hold.nonce}`);
    await release(this.simulated, held, 1_000);
  }

  /** Asks whether a hold still stands. */
  verify(held: Held): Promise<void> {
    return verify(this.simulated, held, 1_000);
  }

  /** Leaves a hold to its ttl. */
  leave({ hold }: Held): void {
    this.stage.shared.kept.add(hold.nonce);
  }

  /** Holds a lock for so many ms by `using`, which has to end as its routine does. */
  async using(resource: string, length: number, options: AcquireOptions): Promise<void> {
    const { world, shared } = this.stage;
    this.client.timeout = timeoutOf(options);
    const invoked = world.moment();
    let lock: Lock | undefined;
    const result = await this.call({
      what: `use ${resource}`,
      bound: boundOf(options) + length,
      codes: ["LOCK_HELD", "NO_QUORUM", "LOCK_LOST"],
      run: () =>
        this.redlock.using(resource, options, async (held) => {
          lock = held;
          const { hold } = this.got(held, recordLock(this.simulated, held, { invoked }, true));
          await this.sleep(length);
          hold.releaseInvoked = world.now;
          shared.locks.end(hold);
          return held.signal.aborted ? "lost" : "kept";
        }),
    });
    const expected = lock && (lock.signal.aborted ? undefined : "kept");
    if (!lock) return;
    world.check("the routine's outcome wins", result === expected, () => `${result} in place of ${expected}`);
  }

  /** Makes a call of the library. Undefined: it rejected as it may. `key`: of its rounds, where contention is an error. */
  async call<Value>(call: Call<Value>, key?: string): Promise<Value | undefined> {
    // Clocks are exact here, and timers punctual: what the simulator allows for them comes off.
    const bound = (call.bound - 60) / 1.25;
    const outcome = await this.simulated.calls.make(this.client, { ...call, bound });
    if ("value" in outcome) return outcome.value;
    const { error } = outcome;
    if (key) checkRefusal(this.simulated, key, error instanceof LimitMismatchError ? null : error);
    return undefined;
  }
}

type Times = Pick<AcquireOptions, "ttl" | "wait" | "timeout">;

/** ms for which a call waits for the answer to each request. */
export function timeoutOf({ ttl = 10_000, timeout = Math.min(1_000, ttl / 3) }: Times): number {
  return Math.min(timeout, ttl);
}

/** ms that a call may take: the waiting, a last round with a fence and a rollback of each, and its timers. */
export function boundOf(options: Times): number {
  const timeout = timeoutOf(options);
  return Math.max(options.wait ?? 5_000, 2 * timeout) + 6 * timeout + 60;
}
