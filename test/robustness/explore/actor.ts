import {
  isRedlockError,
  type Lock,
  LockHeldError,
  LockLostError,
  QuorumError,
  Redlock,
  type RedlockErrorCode,
} from "../../../src/index.ts";
import type { AcquireOptions } from "../../../src/lock/options.ts";
import { quorumOf } from "../../../src/quorum/tally.ts";
import { sleep } from "../../../src/runtime.ts";
import {
  LimitMismatchError,
  Semaphore,
  type Hold as SyncHold,
  type SyncOptions,
} from "../../../src/sync/index.ts";
import type { DebounceHistories } from "../sim/debounce-histories.ts";
import type { LatchHistories } from "../sim/latch-histories.ts";
import type { Meeting } from "../sim/meeting.ts";
import type { OnceHistories } from "../sim/once-histories.ts";
import { nonceOf } from "../sim/request.ts";
import type { RunHistories } from "../sim/run-histories.ts";
import type { Client } from "./client.ts";
import type { Hold, Holds } from "./holds.ts";
import { createLink, type LinkOptions } from "./link.ts";
import type { Checks, Report, Trails } from "./trails.ts";
import type { World } from "./world.ts";

/** What all actors of a world share. */
export interface Stage {
  readonly world: World;
  readonly trails: Trails;
  readonly holds: Holds;
  readonly runs: RunHistories;
  readonly latches: LatchHistories;
  readonly meeting: Meeting;
  readonly once: OnceHistories;
  readonly debounces: DebounceHistories;
  readonly report: Report;
  readonly checks: Checks;
  /** Calls under way. */
  readonly calls: Set<string>;
  /** Nonces that their holders meant never to release. */
  readonly kept: Set<string>;
  readonly actors: Actor[];
}

/** What locks and permits have in common. */
type Handle = Pick<Lock, "remaining" | "signal" | "release" | "extend" | "verify">;

/** A handle together with what the checks know of its hold. */
export interface Held<Any extends Handle = Handle> {
  readonly handle: Any;
  readonly hold: Hold;
}

/** One call of the library, and how it may end. */
interface Call<Value> {
  readonly what: string;
  /** ms within which it must end. */
  readonly bound: number;
  /** Codes of the errors that it may reject with. */
  readonly codes: readonly RedlockErrorCode[];
  readonly run: () => Promise<Value>;
  readonly isExpected?: (error: unknown) => boolean;
  /** Checks the error that it rejected with. */
  readonly checkError?: (error: unknown) => void;
}

/** One client of a scenario: it calls the library, and what the calls return is checked. Its methods never reject. */
export class Actor {
  readonly client: Client;
  readonly redlock: Redlock;
  readonly stage: Stage;
  readonly #inbox: string[] = [];
  #isWaitingFor: ((text: string) => void) | undefined;

  constructor(stage: Stage, client: Client, link: LinkOptions) {
    const { world } = stage;
    this.stage = stage;
    this.client = client;
    const endpoints = world.servers.map((server) => createLink(world, client, server, link));
    this.redlock = new Redlock({ endpoints, runtime: client });
  }

  sleep(ms: number): Promise<void> {
    return sleep(this.client, ms);
  }

  /** Waits until a time, in ms since the world began. */
  async until(time: number): Promise<void> {
    const { world } = this.stage;
    if (time > world.time) await this.sleep(time - world.time);
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
    const { deadline } = options;
    const limit = deadline === undefined ? undefined : this.stage.world.time + deadline - this.client.now();
    const lock = await this.call({
      what: `acquire ${resource}`,
      bound: boundOf(options),
      codes: ["LOCK_HELD", "NO_QUORUM"],
      run: () => this.redlock.acquire(resource, options),
      isExpected: (error) => options.signal?.aborted === true && error === options.signal.reason,
    });
    return lock && this.hold(lock, lock.resources, { holder: lock.token, nonce: nonceOf(lock.value), limit });
  }

  /** Acquires a permit, or not. */
  async permit(name: string, limit: number, options: AcquireOptions): Promise<Held | undefined> {
    const { ttl, wait, timeout, backoff } = options;
    this.client.timeout = timeoutOf(options);
    const permit = await this.call({
      what: `acquire a permit of ${limit}`,
      bound: boundOf(options) * limit,
      codes: ["LOCK_HELD", "NO_QUORUM", "LIMIT_MISMATCH"],
      run: () => new Semaphore(this.redlock, name, { limit }).acquire({ ttl, wait, timeout, backoff }),
    });
    const nonce = this.stage.trails.lastRound(this.client.name)!;
    const permits = { name, limit };
    return permit && this.hold(permit, [`${name} ${permit.slot}`], { holder: nonce, nonce, permits });
  }

  /** Acquires the hold of a synchronizer, or not. */
  async enter(
    name: string,
    { ttl, wait, timeout }: SyncOptions,
    how: Pick<Hold, "invariant" | "group"> & { readonly acquire: (redlock: Redlock) => Promise<SyncHold> },
  ): Promise<Held | undefined> {
    const { acquire, ...of } = how;
    this.client.timeout = timeoutOf({ ttl, timeout });
    const handle = await this.call({
      what: `acquire ${name}`,
      bound: 5 * boundOf({ ttl, wait, timeout }),
      codes: ["LOCK_HELD", "NO_QUORUM"],
      run: () => acquire(this.redlock),
    });
    const nonce = this.stage.trails.lastRound(this.client.name)!;
    return handle && this.hold(handle, [name], { ...of, holder: nonce, nonce });
  }

  /** Records that a handle was returned. */
  hold<Any extends Handle>(
    handle: Any,
    resources: readonly string[],
    grant: Pick<Hold, "holder" | "group" | "nonce" | "permits" | "limit"> &
      Partial<Pick<Hold, "invariant" | "earlier">> & { readonly isResumed?: boolean },
  ): Held<Any> {
    const { client } = this;
    const { holds, world, trails, report } = this.stage;
    const fence = (handle as Partial<Lock>).fence;
    const { isResumed, ...known } = grant;
    const { signal } = handle;
    const hold: Hold = {
      invariant: known.permits ? "one holder per slot" : "mutual exclusion",
      ...known,
      resources,
      client,
      acquired: world.time,
      fence,
      remaining: () => handle.remaining(),
      isLossReported: () => signal.aborted,
      isOver: false,
    };
    world.note(`${client.name} got ${resources} ${known.nonce} ${fence}`);
    world.trace(() => `${client.name} holds ${resources} for ${handle.remaining()} ms, fence ${fence}`);
    const { granted } = trails.acquireVotes(known.nonce);
    if (!isResumed && granted < quorumOf(world.servers.length)) {
      report("a quorum decides", `${client.name} got ${resources} from ${granted} endpoints`);
    }
    holds.add(hold);
    return { handle, hold };
  }

  /** Extends a hold. @returns whether it was extended */
  async extend({ handle, hold }: Held, ttl: number): Promise<boolean> {
    const before = handle.remaining();
    const { world, report } = this.stage;
    const { client } = this;
    const [invoked, sentBefore] = [world.time, client.sent];
    const extended = await this.call({
      what: `extend by ${ttl}`,
      bound: 6 * 1_000,
      codes: ["LOCK_LOST", "NO_QUORUM"],
      run: async () => {
        try {
          return (await handle.extend(ttl)) !== undefined;
        } catch (error) {
          const gone = String(error).includes("gone from a quorum");
          // A repeated request, or an endpoint that lost its memory, may take it away.
          const isDisturbed = [...world.events].some((name) => name.startsWith("forget"));
          if (gone && before > 0 && !hold.isOver && !isDisturbed && !this.#hasRepeats()) {
            report("holds survive", `${client.name} lost ${hold.resources.join()} with ${before} ms left`);
          }
          const isUntried = world.time === invoked && client.sent === sentBefore;
          if (error instanceof LockLostError && !gone && isUntried && before > 0 && !hold.isOver) {
            report("refusals are true", `${client.name} may not extend, with ${before} ms left`);
          }
          throw error;
        }
      },
    });
    this.stage.holds.check();
    if (extended && handle.signal.aborted) {
      report("validity is honest", `${client.name} extended ${hold.resources.join()} after its end`);
    }
    return extended === true;
  }

  /** Releases a hold, and all other handles of its owner. */
  async release({ handle, hold }: Held): Promise<void> {
    const { holds, trails, world, report } = this.stage;
    const { client } = this;
    const isAgain = hold.isOver;
    holds.endAllOf(hold.holder);
    world.note(`${client.name} releases ${hold.nonce}`);
    const said = await this.call({
      what: "release",
      bound: 6 * 1_000,
      codes: ["NO_QUORUM"],
      run: () => handle.release(),
    });
    if (isAgain || said === undefined) return;
    const quorum = quorumOf(world.servers.length);
    const { freed, gone, removed } = trails.releaseVotes([hold.nonce, ...(hold.earlier ?? [])]);
    if (said && removed < quorum) {
      report("a quorum decides", `${client.name}: release said true, and ${removed} endpoints removed it`);
    }
    // A plain lock has no tombstone that tells a repeated release of the first one.
    const isFalse = !said && removed >= quorum && (hold.group !== undefined || !this.#hasRepeats());
    if (isFalse) report("a quorum decides", `${client.name}: release said false, and removed it`);
    if (said ? freed >= quorum : gone > world.servers.length - quorum) return;
    report("a quorum decides", `${client.name}: release said ${said} with ${freed} freed and ${gone} gone`);
  }

  /** Asks whether a hold still stands. */
  async verify({ handle, hold }: Held): Promise<boolean | undefined> {
    const { world, trails, report } = this.stage;
    const { client } = this;
    const asked = world.time;
    const said = await this.call({
      what: "verify",
      bound: 1_000,
      codes: ["NO_QUORUM"],
      run: () => handle.verify(),
    });
    world.note(`${client.name} verified ${hold.nonce}: ${said}`);
    const stood = trails.stoodSince(hold.nonce, asked);
    if (said && (stood < quorumOf(world.servers.length) || handle.remaining() <= 0)) {
      const detail = `found at ${stood} endpoints, and ${handle.remaining()} ms are left`;
      report("verify is true", `${client.name}: ${hold.resources.join()} was ${detail}`);
    }
    return said;
  }

  /** Leaves a hold to its ttl. */
  leave({ hold }: Held): void {
    this.stage.kept.add(hold.nonce);
  }

  /** Holds a lock for so many ms by `using`, which has to end as its routine does. */
  async using(resource: string, length: number, options: AcquireOptions): Promise<void> {
    const { report } = this.stage;
    this.client.timeout = timeoutOf(options);
    let lock: Lock | undefined;
    const result = await this.call({
      what: `use ${resource}`,
      bound: boundOf(options) + length,
      codes: ["LOCK_HELD", "NO_QUORUM", "LOCK_LOST"],
      run: () =>
        this.redlock.using(resource, options, async (held) => {
          lock = held;
          const { hold } = this.hold(held, held.resources, {
            holder: held.token,
            nonce: nonceOf(held.value),
          });
          await this.sleep(length);
          hold.isOver = true;
          return held.signal.aborted ? "lost" : "kept";
        }),
    });
    const expected = lock && (lock.signal.aborted ? undefined : "kept");
    if (lock && result !== expected)
      report("the routine's outcome wins", `${result} in place of ${expected}`);
  }

  /** Makes a call of the library. Undefined: it rejected as it may. */
  async call<Value>({
    what,
    bound,
    codes,
    run,
    isExpected,
    checkError,
  }: Call<Value>): Promise<Value | undefined> {
    const { client } = this;
    const { world, calls, trails, report } = this.stage;
    const [invoked, frozenBefore] = [world.time, client.frozenFor];
    const name = `${client.name} ${what} at ${invoked}`;
    calls.add(name);
    world.trace(() => `${client.name} ${what}`);
    try {
      const value = await run();
      world.trace(() => `${client.name} ${what}: done`);
      return value;
    } catch (error) {
      world.trace(() => `${client.name} ${what}: ${String(error)}`);
      const isTyped = isRedlockError(error) && codes.includes(error.code);
      if (!isTyped && !isExpected?.(error)) report("calls end", `${name} rejected with ${String(error)}`);
      if (what.startsWith("acquire")) this.#checkRefusal(error);
      checkError?.(error);
      const nonce = trails.lastRound(client.name) ?? "";
      if (isTyped && error.code === "LEASE_LOST" && !trails.isContended(nonce)) {
        report("refusals are true", `${client.name}: ${String(error)}, but there is no other run`);
      }
      return undefined;
    } finally {
      calls.delete(name);
      const took = world.time - invoked - (client.frozenFor - frozenBefore);
      if (took > bound) report("calls end", `${name} took ${took} ms of ${bound}`);
    }
  }

  /** Contention is reported where enough endpoints refused, an outage where they failed. */
  #checkRefusal(error: unknown): void {
    const { trails, world, report } = this.stage;
    const isHeld = error instanceof LockHeldError || error instanceof LimitMismatchError;
    const nonce = trails.lastRound(this.client.name);
    if ((!isHeld && !(error instanceof QuorumError)) || !nonce) return;
    const { refused } = trails.acquireVotes(nonce);
    const count = world.servers.length;
    if (isHeld === refused > count - quorumOf(count)) return;
    report(
      "refusals are true",
      `${this.client.name}: ${String(error)}, with ${refused} refusals of ${count}`,
    );
  }

  #hasRepeats(): boolean {
    return this.stage.world.events.has("repeated");
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
