import { integer } from "../check/check.ts";
import type { Ask } from "../endpoints/ask.ts";
import type { LockClient } from "../lock/client.ts";
import { emit } from "../lock/events.ts";
import { holderText } from "../lock/note.ts";
import type { Settings } from "../lock/options.ts";
import { announce } from "../lock/protocol.ts";
import { query } from "../quorum/query.ts";
import { quorumOf } from "../quorum/tally.ts";
import { type CellAnswer, end, keep } from "../redis/cell.ts";
import { keyOf } from "../redis/keys.ts";
import { runScript, unexpectedReply } from "../redis/script.ts";
import { type Runtime, randomToken, stopwatch } from "../runtime/runtime.ts";
import {
  type Hold,
  type HoldProtocol,
  Holds,
  type NotedOptions,
  notedSchema,
  type SyncOptions,
} from "./internal/hold.ts";
import { isInteger, itemsOf } from "./internal/reply.ts";
import { slotScript } from "./internal/slot.lua.ts";

/** Options of a {@link Semaphore}. */
export interface SemaphoreOptions extends SyncOptions {
  /**
   * Most permits held at once: an integer from 1 to 1 000. Callers with other limits share the permits, so there are
   * never more than the largest limit. Every request names a key per permit.
   */
  readonly limit: number;
}

/** A permit of a {@link Semaphore}. */
export interface Permit extends Hold {
  /** 0 … limit − 1, for example to choose a port. No two holders share one. */
  readonly slot: number;
}

/** The state of a {@link Semaphore}. */
export interface SemaphoreState {
  /** How many of its permits are held on a quorum. */
  readonly held: number;
  readonly limitInUse: number | undefined;
}

const mostPermits = 1_000;

/**
 * At most `limit` holders at once. A permit is a lease: a holder that is paused for longer than its validity may wake
 * up beside its successor. Waiters are served in no order.
 *
 * @example
 * const uploads = new Semaphore(redlock, "uploads", { limit: 3, ttl: 30_000 });
 * await using permit = await uploads.acquire({ wait: 10_000, autoExtend: true });
 * await upload(file, { signal: permit.signal });
 */
export class Semaphore {
  readonly name: string;
  readonly limit: number;
  readonly #holds: Holds;

  constructor(redlock: LockClient, name: string, given: SemaphoreOptions) {
    const own = { limit: integer(1, mostPermits) };
    const hints = { required: ["limit"], usual: "limit" };
    this.#holds = new Holds(redlock, name, given, {
      what: "a semaphore",
      call: "new Semaphore(redlock, name, { limit: 3 })",
      own,
      ofCall: notedSchema,
      ...hints,
    });
    this.name = name;
    this.limit = given.limit;
  }

  /**
   * Acquires a permit, waiting while none is free. The event `limitMismatch` reports another limit in use.
   *
   * @throws LockHeldError when none was free within `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason. Acquired permits are rolled back
   */
  async acquire(options: NotedOptions = {}): Promise<Permit> {
    let protocol: PermitProtocol | undefined;
    const hold = await this.#holds.acquire(options, (settings) => {
      protocol = permits(settings, this, options.note);
      return protocol;
    });
    return Object.assign(hold, { slot: protocol!.slot! });
  }

  /**
   * Acquires a permit without waiting.
   *
   * @returns null when none was free, or contenders that came at once got a part each
   * @throws QuorumError as {@link Semaphore.acquire} does
   */
  tryAcquire(options: NotedOptions = {}): Promise<Permit | null> {
    return this.#holds.unlessHeld(options, (given) => this.acquire(given));
  }

  /**
   * Returns the state, and changes nothing.
   *
   * @throws QuorumError when too few endpoints answered
   */
  async inspect(options: SyncOptions = {}): Promise<SemaphoreState> {
    const { name, limit } = this;
    const settings = this.#holds.settings(options);
    const { endpoints, runtime } = settings;
    const send = requestsOf(settings, this);
    const slots = slotsOf(settings, name, limit);
    // Without a slot, it only reads.
    const value = randomToken(runtime);
    const look = (call: Ask) => send(call, { value, slots }, { ttl: 0, span: 0 });
    const answers = (await query(settings, ["inspect", [name]], look)).answers();
    const takenAt = (slot: string) => answers.length - countFree(answers, slot);
    const held = slots.filter((slot) => takenAt(slot) >= quorumOf(endpoints.length)).length;
    return { held, limitInUse: Math.max(...answers.map(({ inUse }) => inUse)) || undefined };
  }
}

interface SlotAnswer extends CellAnswer {
  readonly slot?: string | undefined;
  /** The slots that were free before. */
  readonly free: ReadonlySet<string>;
  /** Before, or 0 if it is not known. */
  readonly inUse: number;
}

interface PermitProtocol extends HoldProtocol<SlotAnswer> {
  readonly slot: number | undefined;
}

type Limited = Pick<Semaphore, "name" | "limit">;

/**
 * Each permit has a slot, which is a lock, so the limit is as exact as a lock is exclusive. Counting holders on each
 * endpoint is not: with a limit of 2, three endpoints can each admit a different two of three holders.
 *
 * High slots are preferred, because smaller limits need the low ones. A single endpoint takes the highest free slot.
 * Several endpoints might take different ones, so each round proposes one slot: first any, then, at once, one that a
 * quorum may have free. The choice is random, because callers of one moment that all proposed the highest would keep
 * each other out. If no quorum has a free slot, there is a pause.
 */
export function permits(settings: Settings, semaphore: Limited, note?: string): PermitProtocol {
  const { name, limit } = semaphore;
  const { runtime, endpoints, wait, onEvent } = settings;
  const quorum = quorumOf(endpoints.length);
  const slots = slotsOf(settings, name, limit);
  const send = requestsOf(settings, semaphore);
  const tried = new Set<string>();
  const waited = stopwatch(runtime);
  const isAlone = endpoints.length === 1;
  let candidates = isAlone ? slots : [pickHigh(slots, runtime)];
  let granted: string | undefined;
  let hasTold = false;

  function tellMismatch(answers: readonly SlotAnswer[]): void {
    const other = answers.find(({ inUse }) => inUse > 0 && inUse !== limit);
    if (!other || hasTold) return;
    hasTold = true;
    emit(onEvent, { type: "limitMismatch", resources: [name], limit, inUse: other.inUse });
  }

  return {
    get slot() {
      return granted === undefined ? undefined : limit - 1 - slots.indexOf(granted);
    },
    cell(nonce) {
      granted = undefined;
      return { keys: candidates, value: holderText({ nonce, note }) };
    },
    claim(call, { keys, value }, ttl) {
      const others = slots.filter((slot) => !keys.includes(slot));
      return send(call, { value, slots: [...keys, ...others] }, { ttl, span: keys.length });
    },
    confirm(round) {
      tellMismatch(round.answers());
      granted = round.answers().find(({ slot }) => slot)!.slot;
      return undefined;
    },
    extend(call, { value }, ttl) {
      const own = [granted!];
      if (ttl === 0) return keep(call, { keys: own, value }, 0);
      return send(call, { value, slots: own }, { ttl, span: 0 });
    },
    release(call, { keys, value }, claim, isAnnounced) {
      if (claim.hasDoneNothing) return Promise.resolve({ outcome: "lost" });
      const { slot } = (claim.answer ?? {}) as Partial<SlotAnswer>;
      // Without an answer it may have taken any of them.
      const released = end(call, { keys: slot ? [slot] : keys, value });
      if (isAnnounced) announce(settings, call, semaphoreWaiter, [name]);
      return released;
    },
    isRestorable: false,
    fence: undefined,
    async next(round) {
      tellMismatch(round.answers());
      for (const slot of candidates) tried.add(slot);
      // A silent endpoint may have the slot free.
      const pending = round.calls.filter(({ answer }) => !answer).length;
      const freeAt = (slot: string) => countFree(round.answers(), slot) + pending;
      const open = slots.filter((slot) => freeAt(slot) >= quorum && !tried.has(slot));
      const goesOn = open.length > 0 && ((await round.result) === "refused" || waited() < wait);
      if (!goesOn) tried.clear();
      if (!isAlone) candidates = [pickHigh(mostFree(goesOn ? open : slots, freeAt), runtime)];
      return goesOn ? "at-once" : "pause";
    },
    heldText: limit === 1 ? ": its permit is held" : `: all ${limit} permits are held`,
    waiter: { kind: semaphoreWaiter },
  };
}

const semaphoreWaiter = "semaphore";

/** The highest first. */
export function slotsOf(
  { prefix }: Pick<Settings, "prefix">,
  name: string,
  limit: number = mostPermits,
): readonly string[] {
  return Array.from({ length: limit }, (_, index) => keyOf(prefix, `slot:${limit - 1 - index}`, name));
}

/** `span`: how many of the slots may be taken. */
function requestsOf({ prefix }: Pick<Settings, "prefix">, { name, limit }: Limited) {
  const limitKey = keyOf(prefix, "limit", name);
  return async (
    call: Ask,
    { value, slots }: { readonly value: string; readonly slots: readonly string[] },
    { ttl, span }: { readonly ttl: number; readonly span: number },
  ): Promise<SlotAnswer> => {
    const reply = await runScript(call, slotScript, [limitKey, ...slots], [value, limit, ttl, span]);
    const [echo, index, states, inUse] = itemsOf(reply);
    const isSane = typeof states === "string" && states.length === slots.length && /^[ft]+$/.test(states);
    if (!isSane || !isInteger(inUse) || inUse < 0 || (echo === 0) !== (index === 0)) throw unexpectedReply();
    const free = new Set(slots.filter((_, place) => states[place] === "f"));
    if (echo === 0) return { outcome: span === 0 ? "lost" : "held", free, inUse };
    const slot = slots[Number(index) - 1];
    if (echo !== value || !slot) throw unexpectedReply();
    return { outcome: "granted", slot, free, inUse };
  };
}

function countFree(answers: readonly SlotAnswer[], slot: string): number {
  return answers.filter(({ free }) => free.has(slot)).length;
}

function mostFree(slots: readonly string[], freeAt: (slot: string) => number): readonly string[] {
  const most = Math.max(...slots.map(freeAt));
  return slots.filter((slot) => freeAt(slot) === most);
}

/** From the upper quarter in every second case. */
function pickHigh(slots: readonly string[], runtime: Pick<Runtime, "random">): string {
  return slots[Math.floor(runtime.random() ** 2 * slots.length)]!;
}
