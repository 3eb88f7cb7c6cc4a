import {
  Idempotency,
  type IdempotencyOptions,
  InProgressError,
  type Outcome,
  type RunContext,
  type RunOptions,
} from "../../../src/idempotency/index.ts";
import { LockHeldError } from "../../../src/index.ts";
import { quorumOf } from "../../../src/quorum/tally.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { lockIdOf } from "../sim/request.ts";
import { type Actor, boundOf, timeoutOf } from "./actor.ts";
import type { Hold } from "./holds.ts";
import { oneTry } from "./programs.ts";
import { textAt } from "./store.ts";

// Calls of `run()`, and the checks of what they do.

const options = { ...oneTry, lease: 400 };

/** What differs from {@link options}; `fails`: the handler throws. */
export type OwnRun = Omit<RunOptions<string>, "lock"> &
  IdempotencyOptions & { readonly key?: string; readonly lock?: readonly string[]; readonly fails?: boolean };

/** Runs a key. Its handler takes so many ms. */
export function run(actor: Actor, length: number, own: OwnRun = {}): Promise<void> {
  return new Run(actor, length, own).make();
}

/** One call, and what is known of it. */
class Run {
  readonly #actor: Actor;
  readonly #length: number;
  readonly #key: string;
  readonly #own: OwnRun;
  readonly #value: string;
  readonly #invoked: number;
  readonly #failure = new Error("the handler failed");
  /** The handler's; undefined: it has not begun. */
  #token: string | undefined;
  #isStored = false;

  constructor(actor: Actor, length: number, own: OwnRun) {
    const { runs, world } = actor.stage;
    this.#actor = actor;
    this.#length = length;
    this.#own = own;
    this.#key = own.key ?? "k";
    this.#value = runs.nextValue().value;
    this.#invoked = world.time;
  }

  async make(): Promise<void> {
    const { key: _, fails, ...own } = this.#own;
    const given = { ...options, scope: "sim", ...own };
    const { client, redlock } = this.#actor;
    client.timeout = timeoutOf(given);
    const outcome = await this.#actor.call({
      what: `run the key ${this.#key}`,
      // Counting an attempt takes two more rounds, and the fence of a lock one.
      bound: boundOf(given) + this.#length + (own.maxAttempts || own.lock ? 3 * client.timeout : 0),
      codes: [
        ...(["IN_PROGRESS", "LEASE_LOST", "NO_QUORUM", "FINGERPRINT_MISMATCH"] as const),
        ...(own.lock ? (["LOCK_HELD"] as const) : []),
        ...(own.maxAttempts ? (["DEAD_KEY"] as const) : []),
      ],
      isExpected: (error) => error === this.#failure,
      checkError: (error) => this.#checkError(error),
      run: () =>
        new Idempotency(redlock, {
          retention: 10_000_000,
          onEvent: ({ type }) => this.#observe(type),
        }).run(this.#key, given, (context) => this.#handle(context, fails === true)),
    });
    if (outcome) this.#checkOutcome(outcome);
  }

  #observe(type: string): void {
    const { runs, world } = this.#actor.stage;
    world.note(`${this.#actor.client.name} ${type}`);
    if (type !== "executed") return;
    this.#isStored = true;
    runs.stored(this.#key, this.#value, this.#invoked);
  }

  async #handle(context: RunContext, fails: boolean): Promise<string> {
    const { client, stage } = this.#actor;
    const { runs, world, holds } = stage;
    const { maxAttempts, lock = [] } = this.#own;
    const { token, fence } = context;
    this.#token = token;
    world.note(`${client.name} runs ${this.#value}`);
    world.trace(() => `${client.name} runs its handler: ${this.#value}, fence ${fence}`);
    runs.begins(this.#key, client.name);
    if (maxAttempts) runs.counts(this.#key, client.name, maxAttempts);
    this.#checkVotes(token);
    // Not the token alone: an operator may free the locks, and not the key.
    const own = [this.#hold(context, { resources: [this.#key], nonce: `run ${token}` })];
    if (lock.length > 0) own.push(this.#hold(context, { resources: lock, nonce: token, fence }));
    for (const hold of own) holds.add(hold);
    await this.#actor.sleep(this.#length);
    for (const hold of own) hold.isOver = true;
    if (fails) {
      runs.failed(this.#key);
      throw this.#failure;
    }
    runs.returned(this.#key, this.#value);
    return this.#value;
  }

  #hold(
    { token, remaining, signal }: RunContext,
    of: Pick<Hold, "resources" | "nonce"> & { readonly fence?: number | undefined },
  ): Hold {
    const { client, stage } = this.#actor;
    return {
      ...of,
      invariant: of.nonce === token ? "mutual exclusion" : "one handler at a time",
      holder: token,
      client,
      acquired: stage.world.time,
      remaining,
      isLossReported: () => signal.aborted,
      isOver: false,
    };
  }

  /** A handler begins only where a quorum has granted its claim, all of it. */
  #checkVotes(token: string): void {
    const { world, trails, report } = this.#actor.stage;
    const { lock = [] } = this.#own;
    for (const id of lock.length > 0 ? [token, lockIdOf(token)] : [token]) {
      const { granted } = trails.acquireVotes(id);
      if (granted >= quorumOf(world.servers.length)) continue;
      report("a quorum decides", `${this.#actor.client.name} runs with ${granted} endpoints for ${id}`);
    }
  }

  #checkOutcome({ status, value, unstored }: Outcome<string>): void {
    const { stage, client } = this.#actor;
    const { runs, report, kept } = stage;
    if (status === "replayed") runs.replayed(this.#key, value, this.#invoked);
    else if (value !== this.#value) report("the routine's outcome wins", value);
    // Without a quorum the claim stands until its lease ends, and keeps other runs away.
    if (unstored === "no-quorum") kept.add(lockIdOf(this.#token!));
    if (!this.#isStored) return;
    const { world } = stage;
    for (const resource of this.#own.lock ?? []) {
      const key = keyOf("redlock", "lock", resource);
      const stands = world.servers.filter(
        (server) => textAt(world.contentsOf(server), key) === this.#token,
      ).length;
      if (2 * stands <= world.servers.length) continue;
      report(
        "a run frees its lock",
        `${client.name} has stored its result, and ${stands} endpoints keep ${resource}`,
      );
    }
  }

  /** The key is in progress only if an endpoint said so; the lock is held only if no quorum was left. */
  #checkError(error: unknown): void {
    const { trails, world, report } = this.#actor.stage;
    const { name } = this.#actor.client;
    const nonce = trails.lastRound(name);
    if (nonce === undefined) return;
    const { refused, byLock } = trails.acquireVotes(nonce);
    const { length: count } = world.servers;
    if (error instanceof InProgressError && refused === 0) {
      report("refusals are true", `${name}: the key is in progress, and no endpoint said so`);
    }
    if (error instanceof LockHeldError && byLock <= count - quorumOf(count)) {
      report("refusals are true", `${name}: the lock is held, and ${byLock} endpoints of ${count} said so`);
    }
  }
}
