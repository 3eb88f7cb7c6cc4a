import {
  DeadKeyError,
  Idempotency,
  InProgressError,
  type LockedRunContext,
  ResultUnavailableError,
  type RunContext,
  type Outcome as RunOutcome,
} from "../../../src/idempotency/index.ts";
import { LockHeldError, type RedlockErrorCode } from "../../../src/index.ts";
import type { Hold } from "../checks/holds.ts";
import { countKeyOf, RunHistories, recordKeyOf } from "../checks/runs.ts";
import { keyOf, quorumOf, vetoOf } from "../field.ts";
import { checkLocksFreed } from "../wire/cells.ts";
import type { Work } from "../world/scenario.ts";
import type { World } from "../world/world.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { drawResources, longestUpdate, updateAccount } from "./lock.ts";
import { type DrawnOptions, drawOptions, drawSignal, noteOf, timeOf } from "./options.ts";
import { isRunProber } from "./probers.ts";
import type { Workload } from "./workload.ts";

const lockKeysOf = (resources: readonly string[]): string[] =>
  resources.map((resource) => keyOf("lock", resource));

/** A run's value in the histories when its result could not be stored. */
const noResult = "no result";

/** How one call of a key is made, and what its handler does. Times are ms. */
interface RunPlan {
  readonly key: string;
  readonly options: RunOptions;
  /** How long the handler works. */
  readonly length: number;
  readonly throws: boolean;
  /** For the whole call. Default: what the options allow. */
  readonly bound?: number;
  /** Codes of the errors that the call may reject with. Default: all but those of misuse. */
  readonly codes?: readonly RedlockErrorCode[];
  /** How many runs may begin and not end. Default: runs are not counted. */
  readonly maxAttempts?: number;
  /** The resources that the run locks. Default: none. */
  readonly lock?: readonly string[];
  readonly note?: string | undefined;
}

interface RunOptions extends Partial<Pick<DrawnOptions, "timeout" | "deadline">> {
  readonly lease: number;
  readonly wait: number;
  readonly backoff: Partial<DrawnOptions["backoff"]>;
  readonly maxHold?: number;
  readonly fingerprint?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Handlers under keys that others use as well; some of them lock resources, or are counted. */
export class RunWorkload implements Workload {
  readonly blockingKeys = ["redlock:lock:*"];
  readonly #histories: RunHistories;

  constructor({ world, scenario, wire }: SharedContext) {
    // Single flights forget what is too old: nothing of runs.
    const forgets = !scenario.work.includes("flight");
    this.#histories = new RunHistories(world, forgets ? (key) => wire.lastRemoval(key) : undefined);
  }

  async perform(actor: Actor, kind: Work): Promise<void> {
    await this.#make(
      actor,
      kind === "attempts" ? drawCounted(actor) : drawPlan(actor, kind === "locked run"),
    );
  }

  /** Runs a key, or gets its result; or runs a key of its own under a lock that all want. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { draw, process, scenario } = actor;
    const options: RunOptions = { lease: 5_000, backoff: {}, wait: 10 * bound };
    const codes = ["RESULT_UNAVAILABLE"] as const;
    const plan = { options, throws: false, bound, codes, length: draw.between(1, 30) };
    const own = { ...plan, key: `of ${process.name}`, lock: scenario.resources.slice(0, 1) };
    const key = isUndecidable(actor.world, "k1") ? "k0" : "k1";
    const isShared = scenario.work.includes("idempotency");
    await Promise.all([
      isShared && this.#make(actor, { ...plan, key }),
      isRunProber(actor) && this.#make(actor, own),
    ]);
  }

  #make(actor: Actor, plan: RunPlan): Promise<unknown> {
    return new Run(actor, this.#histories, plan).make();
  }
}

function drawPlan(actor: Actor, isLocked: boolean): RunPlan {
  const { draw, scenario, world } = actor;
  const key = draw.pick(["k1", "k2", "k3", `k${4 + Math.floor(world.now / (20 * scenario.ttl))}`]);
  const { ttl: lease, ...drawn } = drawOptions(actor);
  const options: RunOptions = {
    lease,
    ...drawn,
    maxHold: draw.pick([lease, 4 * lease]),
    fingerprint: draw.chance(0.1) ? draw.pick(["one", "two"]) : undefined,
    signal: drawSignal(actor, lease),
  };
  const length = draw.between(0, draw.chance(0.3) ? 3 : 0.8) * lease;
  const plan: RunPlan = { key, options, length, throws: draw.chance(0.15) };
  return isLocked ? { ...plan, lock: drawResources(actor), note: noteOf(actor, lease) } : plan;
}

/** The errors of runs that are neither counted nor locked, and have no fingerprint. */
const unserved = ["IN_PROGRESS", "LEASE_LOST", "NO_QUORUM", "RESULT_UNAVAILABLE"] as const;

/** How many runs of a counted key may begin and neither complete nor fail. */
const maxAttempts = 2;

/** A run of a key whose runs are counted. Many handlers hang, and their runs never end. */
function drawCounted(actor: Actor): RunPlan {
  const { draw, scenario, world } = actor;
  const key = draw.pick(["d1", "d2", `d${3 + Math.floor(world.now / (20 * scenario.ttl))}`]);
  const { ttl: lease, ...drawn } = drawOptions(actor);
  const hangs = draw.chance(0.6);
  const options: RunOptions = { lease, ...drawn, maxHold: hangs ? lease : 4 * lease };
  const length = (hangs ? draw.between(1.5, 3) : draw.between(0, 0.5)) * lease;
  const codes = [...unserved, "DEAD_KEY"] as const;
  return { key, options, length, throws: draw.chance(hangs ? 0 : 0.4), codes, maxAttempts };
}

/** One call of a key, and what is known of it. */
class Run {
  readonly #actor: Actor;
  readonly #histories: RunHistories;
  readonly #plan: RunPlan;
  readonly #failure = new Error("the handler failed");
  readonly #invoked: number;
  readonly #result: unknown;
  /** The value in the histories. */
  readonly #recorded: string;
  readonly #idempotency: Idempotency;
  /** The handler's token, and its holds of the key and of the locks; undefined: it has not begun. */
  #token: string | undefined;
  #locks: Hold | undefined;
  /** When the locks may be held at the latest. */
  readonly #limit: number;

  constructor(actor: Actor, histories: RunHistories, plan: RunPlan) {
    this.#actor = actor;
    this.#histories = histories;
    this.#plan = plan;
    this.#invoked = actor.world.now;
    const { value, serial } = histories.nextValue();
    const { result, maxResult } = resultOf(value, serial);
    this.#result = result;
    this.#recorded = result === value ? value : noResult;
    this.#limit = timeOf(actor, plan.options.deadline);
    this.#idempotency = new Idempotency(actor.redlock, {
      // Far beyond the end of the simulation.
      retention: 86_400_000,
      maxResult,
      maxAttempts: plan.maxAttempts,
    });
  }

  async make(): Promise<void> {
    const { process, calls } = this.#actor;
    const { key, options, length, bound, codes, maxAttempts: most, lock, note } = this.#plan;
    const { timeout = 1_000, wait, lease } = options;
    // Counting takes two more rounds, and taking the count back one.
    const counting = most === undefined ? 0 : 5 * timeout;
    const locking = lock ? timeout + longestUpdate(lease) : 0;
    const outcome = await calls.make(process, {
      counted: "run",
      what: `run ${key} ${JSON.stringify(options)}`,
      bound:
        bound ??
        Math.max(wait, 2 * timeout) + length + Math.max(wait, 2 * timeout) + 6 * timeout + counting + locking,
      codes: codes ?? [...unserved, "FINGERPRINT_MISMATCH", ...(lock ? (["LOCK_HELD"] as const) : [])],
      run: () =>
        this.#idempotency.run(key, { scope: "sim", ...options, ...(lock && { lock, note }) }, (context) =>
          lock ? this.#handleLocked(context as LockedRunContext, lock) : this.#handle(context),
        ),
      failure: this.#failure,
      signal: options.signal,
    });
    if (this.#token) this.#checkRequests(this.#token);
    if ("value" in outcome) this.#checkOutcome(outcome.value);
    else this.#checkError(outcome.error);
  }

  /** The handler of a run with locks. Its fence guards an account. */
  async #handleLocked(context: LockedRunContext, resources: readonly string[]): Promise<unknown> {
    const { locks } = this.#actor;
    const hold = this.#lock(context, resources);
    this.#locks = hold;
    const { options } = this.#plan;
    const update = () => updateAccount(this.#actor, { ...context, resources, ttl: options.lease });
    return this.#handle(context, { update, end: () => locks.release(hold) });
  }

  #lock({ signal, remaining, token, fence }: LockedRunContext, resources: readonly string[]): Hold {
    const { world, process, locks, wire, scenario } = this.#actor;
    const { granted } = wire.acquireVotes(token);
    const what = () => `${process.name} runs with ${resources} from ${granted} endpoints`;
    world.check("a quorum decides", granted >= quorumOf(scenario.endpoints), what);
    world.count("run with locks");
    const standing = () => wire.standing(token, lockKeysOf(resources));
    const grant = { resources, nonce: token, fence, process, remaining, signal, standing };
    return locks.grant({ ...grant, invoked: this.#invoked, limit: this.#limit, note: this.#plan.note });
  }

  /** The handler. `locked`: what one with locks does besides, and what ends its locks. */
  async #handle(
    context: RunContext,
    locked?: { readonly update: () => Promise<void>; readonly end: () => void },
  ): Promise<unknown> {
    const { process, claims, sleep } = this.#actor;
    const { key, length, throws, maxAttempts: most, bound } = this.#plan;
    this.#histories.begins(key, process.name);
    if (most !== undefined) this.#histories.counts(key, process.name, most);
    this.#token = context.token;
    const hold = this.#claim(context);
    await sleep(length);
    // A probe changes no account.
    if (bound === undefined) await locked?.update();
    claims.release(hold);
    locked?.end();
    if (throws) {
      this.#histories.failed(key);
      throw this.#failure;
    }
    this.#histories.returned(key, this.#recorded);
    return this.#result;
  }

  #claim({ signal, remaining, token }: RunContext): Hold {
    const { process, claims, wire } = this.#actor;
    const { key } = this.#plan;
    const standing = () => wire.standing(token, [recordKeyOf(key)]);
    // Not the token alone: an operator may free the locks of that name, and not the key.
    const nonce = `run ${token}`;
    const grant = { resources: [key], nonce, process, remaining, signal, standing };
    return claims.grant({ ...grant, invoked: this.#invoked });
  }

  /** Extensions of the lease pause. */
  #checkRequests(nonce: string): void {
    const { world, process, wire } = this.#actor;
    const { key, options } = this.#plan;
    const extensions = wire.extensionsSent(nonce);
    // At half of the lease, as a lock at half of its ttl: see checkExtensionRate.
    const half = 0.495 * options.lease - 2;
    const most = 6 + (2 * (world.now - this.#invoked)) / Math.min(options.backoff.min ?? 25, half);
    const what = () => `${process.name} sent ${extensions} extensions of ${key}`;
    if (extensions > 0) world.check("requests are bounded", extensions <= most, what);
  }

  #checkOutcome({ status, value, unstored }: RunOutcome<unknown>): void {
    const { world, process, wire } = this.#actor;
    const { key, bound } = this.#plan;
    // After the faults nothing may keep a result, or the record that replaces it, from its quorum.
    if (bound !== undefined) {
      const what = () => `${process.name}: the result of ${key} is not stored`;
      world.check("waiters are served", unstored !== "no-quorum", what);
    }
    world.count(`run ${status}`);
    if (unstored) world.count(`run: unstored, ${unstored}`);
    if (status === "replayed") {
      this.#histories.replayed(key, String(value), this.#invoked);
      return;
    }
    const what = () => `${process.name}: ${String(value)} instead of ${this.#recorded}`;
    world.check("the routine's outcome wins", value === this.#result, what);
    if (unstored === "no-quorum") return;
    this.#histories.stored(key, this.#recorded, this.#invoked);
    if (!this.#locks) return;
    const { nonce, resources } = this.#locks;
    checkLocksFreed(world, process.name, nonce, wire.standing(nonce, lockKeysOf(resources)));
  }

  #checkError(error: unknown): void {
    const { scenario } = this.#actor;
    if (error instanceof ResultUnavailableError) {
      this.#histories.replayed(this.#plan.key, noResult, this.#invoked);
    } else if (error instanceof DeadKeyError) this.#checkDead(error);
    else if (error instanceof InProgressError) this.#checkRefusal("refused", 1);
    else if (error instanceof LockHeldError) this.#checkRefusal("byLock", vetoOf(scenario.endpoints));
  }

  /** A key is dead only if so many runs were counted as are allowed. */
  #checkDead({ attempts }: DeadKeyError): void {
    const { world, wire, process } = this.#actor;
    const { key, maxAttempts: most = Infinity } = this.#plan;
    const counted = wire.runsCounted(countKeyOf(key));
    const what = () => `${process.name}: ${key} is dead after ${attempts} runs, and ${counted} were counted`;
    world.check("refusals are true", attempts >= most && counted >= attempts, what);
  }

  /** The locks are held only if so many endpoints said so that no quorum was left; a key is in progress if any did. */
  #checkRefusal(by: "byLock" | "refused", least: number): void {
    const { world, process, wire } = this.#actor;
    const { key, lock } = this.#plan;
    const token = wire.lastRound(process, recordKeyOf(key));
    const refused = token === undefined ? 0 : wire.acquireVotes(token)[by];
    const what = () =>
      `${process.name}: ${key} is refused (${by}, ${lock}), and ${refused} endpoints said so`;
    world.check("refusals are true", refused >= least, what);
  }
}

/**
 * What a handler returns: mostly a text; sometimes a value without JSON, one longer than `maxResult`, or one that the
 * servers refuse for its size. Depends on the serial number, not on a random draw, so that it shifts no other draw.
 */
function resultOf(value: string, serial: number): { readonly result: unknown; readonly maxResult: number } {
  if (serial % 9 === 4) return { result: { value, id: 1n }, maxResult: 1_000_000 };
  if (serial % 9 === 7) return { result: value.padEnd(1_500, "."), maxResult: 1_000 };
  if (serial % 9 === 8) return { result: value.padEnd(25_000, "."), maxResult: 100_000 };
  return { result: value, maxResult: 1_000_000 };
}

/**
 * Whether the endpoints that answer have several results of a key, none of which can still get a quorum among them.
 * A silent endpoint may have made one of them the decided result. No caller can get a result before that endpoint
 * answers or the retention ends.
 */
function isUndecidable({ servers }: World, key: string): boolean {
  const answering = servers.filter(({ silent }) => !silent);
  const records = answering.map((server) => String(server.execute(["GET", recordKeyOf(key)])));
  const results = records.filter((record) => /^[CN]1 /.test(record));
  const most = Math.max(0, ...results.map((result) => results.filter((other) => other === result).length));
  return results.length > 0 && most + records.length - results.length < quorumOf(servers.length);
}
