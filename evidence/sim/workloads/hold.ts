import type { RedlockErrorCode } from "../../../src/index.ts";
import type { Hold as Handle } from "../../../src/sync/index.ts";
import { Holds } from "../checks/holds.ts";
import { keyOf } from "../field.ts";
import type { Invariant } from "../world/invariants.ts";
import type { Work } from "../world/scenario.ts";
import type { Actor, SharedContext } from "./actor.ts";
import {
  type AcquiredHandle,
  type CommonHandle,
  checkExtensionRate,
  checkRefusal,
  type HeldHandle,
  recordHold,
  release,
  useHandle,
} from "./handles.ts";
import { type DrawnOptions, drawOptions, drawSignal, GivenUp, noteOf, timeOf } from "./options.ts";
import type { Workload } from "./workload.ts";

// Whatever a protocol acquires: a handle that is acquired, used and released. Locks, permits, readers, writers and owners
// differ in how they are acquired, and in what may be held beside them.

/** The options of an acquire. */
export type Options = DrawnOptions & {
  readonly autoExtend: boolean;
  readonly maxHold: number;
  readonly signal: AbortSignal | undefined;
};

/** What a handle is. */
export interface Kind {
  /** The name under which it is counted. */
  readonly counted: string;
  /** Who may hold beside it. Default: nobody. */
  readonly group?: string;
  /** The limit of its semaphore. */
  readonly limit?: number;
  /** What it is about, and the key of its rounds. Default: those of the workload. */
  readonly resources?: readonly string[];
  readonly key?: string;
}

/** How a process acquires a handle, and what it does with it. */
export interface Way<H> extends Kind {
  /** For the trace. */
  readonly what: string;
  /** How many rounds and rollbacks may follow once the waiting is over. */
  readonly rounds: number;
  /** ms after which it asks whatever messages come. Default 30 000. */
  readonly longestPause?: number | undefined;
  /** By how much a pause may be longer than the backoff's. Default 1. */
  readonly pauses?: number;
  /** Acquires it, or tries to once. */
  acquire(how: "acquire" | "tryAcquire", options: Options, note: string | undefined): Promise<H | null>;
  /** Called when the call has ended, before its end is judged. */
  readonly ended?: () => void;
  /** What happens while it is held, before it is used. */
  readonly inside?: () => Promise<void>;
  /** What its holder does besides. */
  readonly update?: (handle: H) => Promise<void>;
  /** Gives it to another process, in place of the release. */
  readonly passOn?: ((held: HeldHandle<H>, timeout: number) => Promise<void>) | undefined;
}

/** How a process probes: it holds what it gets for `length` ms. */
interface Probe<H> extends Kind {
  readonly what: string;
  readonly run: () => Promise<H>;
  /** Default: up to 30. */
  readonly length?: () => number;
  readonly served?: () => void;
}

/** The errors of an acquire. */
const codes: readonly RedlockErrorCode[] = ["LOCK_HELD", "NO_QUORUM"];

/** Handles of one name that processes acquire, use and release. */
export abstract class HoldWorkload<H extends CommonHandle = Handle> implements Workload {
  abstract readonly blockingKeys: readonly string[];
  protected readonly shared: SharedContext;
  readonly holds: Holds;
  protected readonly name: string;
  protected readonly key: string;

  /**
   * @param kind of the key of its rounds
   * @param holds those of all workloads of the kind, or the invariant that holds violate which overlap
   */
  constructor(shared: SharedContext, kind: string, name: string, holds: Invariant | Holds) {
    this.shared = shared;
    this.name = name;
    this.key = keyOf(kind, name);
    this.holds = holds instanceof Holds ? holds : new Holds(shared.world, holds);
  }

  abstract perform(actor: Actor, kind: Work): Promise<void>;
  abstract probe(actor: Actor, bound: number): Promise<void>;

  /** Acquires with random options, sometimes without waiting, sometimes with an abort. Then uses and releases it. */
  protected async use(actor: Actor, way: Way<H>): Promise<void> {
    const { draw } = actor;
    const drawn = drawOptions(actor);
    const maxHold = draw.pick([drawn.ttl, 3 * drawn.ttl]);
    const signal = drawSignal(actor, drawn.ttl);
    const options: Options = { ...drawn, autoExtend: draw.chance(0.3), maxHold, signal };
    const note = noteOf(actor, drawn.ttl);
    const [invoked, limit] = [actor.world.now, timeOf(actor, drawn.deadline)];
    const handle = await this.#acquire(actor, way, options, note);
    if (!handle) return;
    const listens = draw.chance(0.5) || options.autoExtend;
    const held = { ...this.record(actor, { handle, invoked, listens, note, limit }, way), handle };
    await way.inside?.();
    await this.#useAndRelease(actor, held, options, way);
  }

  async #acquire(actor: Actor, way: Way<H>, options: Options, note: string | undefined): Promise<H | null> {
    const { world, process, calls } = actor;
    const { what, rounds, counted } = way;
    const { ttl, wait, timeout, signal } = options;
    const once = actor.draw.chance(0.2);
    const invoked = world.now;
    const backoff = { ...options.backoff, max: (way.pauses ?? 1) * options.backoff.max };
    // A waiter that has waited for long pauses for as long as its backoff allows.
    const longestPause = way.longestPause && Math.max(way.longestPause, backoff.max);
    const outcome = await calls.make(process, {
      counted,
      what: `${once ? "try " : ""}${what} ${JSON.stringify(options)}`,
      bound: (once ? 0 : wait) + rounds * Math.min(timeout, ttl),
      waits: { timeout, backoff, rounds, longestPause },
      codes,
      run: () =>
        once
          ? way.acquire("tryAcquire", { ...options, wait: 0 }, note)
          : way.acquire("acquire", options, note),
      signal,
    });
    way.ended?.();
    if ("value" in outcome && outcome.value) return outcome.value;
    const error = "error" in outcome ? outcome.error : null;
    if (error === null) world.count(`${counted}: refused`);
    if (error instanceof GivenUp) {
      const late = world.now - error.at;
      const detail = () => `${process.name} went on for ${late.toFixed()} ms after it was aborted`;
      world.check("calls end", late <= 0, detail);
    }
    checkRefusal(actor, way.key ?? this.key, invoked, error);
    return null;
  }

  /** Uses a hold, then releases it once, twice or never, or passes it on. */
  async #useAndRelease(
    actor: Actor,
    held: HeldHandle<H>,
    options: Options,
    { update, passOn }: Way<H>,
  ): Promise<void> {
    const { draw, kept } = actor;
    const { timeout } = options;
    const fate = draw.fraction();
    const forgets = fate < 0.08;
    if (forgets) kept.add(held.hold.nonce);
    const passes = passOn && !forgets && draw.chance(0.7);
    // What has been held for long may have too little validity left to be passed on.
    const isUsed = !passes || draw.chance(0.5);
    const extensions = isUsed
      ? await useHandle(actor, held, timeout, update && (() => update(held.handle)))
      : 0;
    if (passes) return passOn(held, timeout);
    if (!forgets) await release(actor, held, timeout);
    if (fate > 0.95) await release(actor, held, timeout);
    checkExtensionRate(actor, held.hold, extensions, options);
  }

  /** After the faults: acquires, holds for a moment, and releases. @returns whether it was served */
  protected async serve(actor: Actor, bound: number, probe: Probe<H>): Promise<boolean> {
    const { world, process, calls, draw } = actor;
    const { what, run, length = () => draw.between(1, 30) } = probe;
    const invoked = world.now;
    const outcome = await calls.make(process, { what: `probe: ${what}`, bound, run });
    if ("error" in outcome) return false;
    const held = this.record(actor, { handle: outcome.value, invoked, listens: false }, probe);
    probe.served?.();
    await actor.sleep(length());
    await release(actor, held, 1_000);
    return true;
  }

  /** Records what was acquired. */
  protected record(actor: Actor, acquired: AcquiredHandle<H>, kind: Kind): HeldHandle {
    const { counted, group, resources = [this.name], key = this.key } = kind;
    const nonce = actor.wire.lastRound(actor.process, key)!;
    this.shared.world.count(counted);
    return recordHold(actor, { ...acquired, holds: this.holds, resources, nonce, group });
  }
}
