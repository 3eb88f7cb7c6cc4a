import { checkInteger, checkOptions, checkText, wrongType } from "../check.ts";
import type { Ask } from "../endpoints/ask.ts";
import { LockLostError, QuorumError, secondsHint } from "../errors.ts";
import { emit } from "../events.ts";
import { mostlyDone } from "../quorum/mostly-done.ts";
import { retry } from "../quorum/retry.ts";
import { type Round, runRound } from "../quorum/round.ts";
import { type Answer, isVeto, quorumOf } from "../quorum/tally.ts";
import { undoQuietly, unlessRefused } from "../quorum/undo.ts";
import { type Cell, type CellAnswer, end, keep } from "../redis/cell.ts";
import { maxTimerDelay, randomToken, runInBackground, settledWithin, tokenLength } from "../runtime.ts";
import { clientStateOf, type LockClient, settingsOf } from "./client.ts";
import { fenced, fenceOf } from "./fence.ts";
import { type FencedLock, Lock } from "./lock.ts";
import { holderText, parseHolder } from "./note.ts";
import { checkPrefix, checkResources, type LockOptions, lockSchema, type Settings } from "./options.ts";
import { type Protocol, plain, tombstoneOf } from "./protocol.ts";

/** A lock as plain JSON, for another process. It contains the lock's token: treat it as a secret. */
export interface LockJSON {
  readonly resources: readonly string[];
  readonly prefix: string;
  readonly nonce: string;
  readonly note?: string;
  readonly ttl: number;
  readonly fence?: number;
  /** The endpoints, by name: the receiver's client must have the same. */
  readonly endpoints: readonly string[];
}

/** Options of {@link resume}: those of locks, without what the message says. */
export type ResumeOptions = Omit<LockOptions, "ttl" | "fencing" | "prefix">;

const { ttl: _ttl, fencing: _fencing, prefix: _prefix, ...schema } = lockSchema;
const elsewhere = {
  ttl: "the lock that was handed over",
  fencing: "that lock",
  prefix: "that lock",
  note: "that lock",
};

const notHandedOver = "resume needs what handoff(lock) resolved to";

/** The {@link LockJSON} of a lock with a fence. */
export interface FencedLockJSON extends LockJSON {
  readonly fence: number;
}

/**
 * Hands a lock over to another process, which goes on with {@link resume}. This handle ends, as if it had been released,
 * but the lock stays held until its ttl ends: nothing extends it until it is resumed. Waits for requests under way.
 *
 * @returns what `resume` needs, as plain JSON. It contains the lock's token: treat it as a secret
 * @throws LockLostError when the lock is lost, released, or handed over already
 *
 * @example
 * await queue.send({ job, lock: await handoff(lock) });
 */
export function handoff(lock: FencedLock): Promise<FencedLockJSON>;
export function handoff(lock: Lock): Promise<LockJSON>;
export async function handoff(lock: Lock): Promise<LockJSON> {
  if (!lock?.parts) throw wrongType("lock", lock, "a Lock, as acquire() returns it");
  const { settings, cell, validity } = lock.parts();
  await lock.requestsDone();
  if (validity.released) throw validity.lose("it was released or handed over");
  if (validity.loss) throw validity.loss;
  lock.abandon();
  const { resources, ttl, fence } = lock;
  const { prefix } = settings;
  const { nonce, note } = parseHolder(cell.value);
  const endpoints = settings.endpoints.map(({ name }) => name);
  const more = { ...(note !== undefined && { note }), ...(fence !== undefined && { fence }) };
  return { resources, prefix, nonce, ttl, ...more, endpoints };
}

/**
 * Goes on with a lock that another process handed over by {@link handoff}, for a whole ttl. Of several processes that
 * resume it, because a queue has delivered the message twice, one gets it: a compare-and-set on a quorum, one round, puts
 * a nonce of its own in the place of the one in the message. When no process gets a quorum, each puts the old one back and
 * tries again, for as long as `wait`; when too few endpoints answer, the message can be tried again.
 *
 * @throws LockLostError when another process has resumed it, it was released, or it has expired
 * @throws QuorumError when too few endpoints answered; it may be tried again
 * @throws TypeError | RangeError when `json` is not what `handoff` returned, or its lock has other endpoints
 *
 * @example
 * await using lock = await resume(redlock, message.lock, { autoExtend: true });
 */
export function resume(
  redlock: LockClient,
  json: FencedLockJSON,
  options?: ResumeOptions,
): Promise<FencedLock>;
export function resume(redlock: LockClient, json: LockJSON, options?: ResumeOptions): Promise<Lock>;
export async function resume(
  redlock: LockClient,
  json: LockJSON,
  options: ResumeOptions = {},
): Promise<Lock> {
  checkOptions<ResumeOptions>("resume", options, schema, { elsewhere });
  // First: of `resume(json)` it is not the message that is wrong.
  clientStateOf(redlock);
  const given = checkMessage(json);
  const settings = settingsOf(redlock, options, { prefix: given.prefix });
  checkEndpoints(given, settings);
  const own = new Set<string>();
  let rounds = 0;
  return retry<Lock>(settings, {}, async (progress) => {
    const { protocol, cell, round } = swapNonces(settings, given);
    own.add(cell.value);
    rounds += 1;
    const result = await round.result;
    if (result === "granted") {
      const grant = { protocol, cell, round, ttl: given.ttl, limit: Infinity };
      const lock = new Lock(settings, given.resources, grant);
      if (lock.remaining() > 0) {
        const { resources, note } = given;
        const elapsed = progress.elapsed();
        emit(settings.onEvent, { type: "acquired", resources, rounds, elapsed, note, fence: lock.fence });
        lock.activate();
        return { value: lock };
      }
    }
    // Only all answers show who has it.
    await round.done;
    const isSplit = mayBeSplit(round, own);
    const isGone = result === "refused" && !isSplit;
    progress.keep(undoSwap(settings, { cell, round }, isGone ? undefined : given));
    return {
      next: isSplit && result !== "granted" ? "pause" : "end",
      end() {
        if (isGone) {
          const why = "it was resumed before, or released, or has expired";
          throw new LockLostError(given.resources, why + secondsHint(given.ttl));
        }
        throw new QuorumError("resume", given.resources, round.votes(), {
          late: result === "granted",
          ttl: given.ttl,
        });
      },
    };
  });
}

/** One attempt to resume a lock: its round, and what the new holder has. */
interface Swap {
  readonly protocol: Protocol;
  /** With a tombstone, because a swap that has no answer may be executed late. */
  readonly cell: Cell;
  readonly round: Round<CellAnswer>;
}

/**
 * Puts a nonce of its own in the place of the one in the message, at every endpoint. Another one in each attempt: a late
 * request of this one must not count for the next.
 */
function swapNonces(settings: Settings, given: LockJSON): Swap {
  const { resources, prefix, note, ttl, fence } = given;
  const drawn = fence === undefined ? undefined : fenceOf(settings, resources, fence);
  const protocol = drawn ? fenced(settings, resources, note, drawn) : plain(settings, resources, note);
  const nonce = randomToken(settings.runtime);
  const cell = { ...protocol.cell(nonce), tombstone: tombstoneOf(prefix, resources, nonce) };
  // By script, because of its tombstone: that returns what is in the way.
  const former = { ...cell, value: holderText(given) };
  const counted = drawn ? drawn.counted(former, ttl) : former;
  const swapOne = (call: Ask) => keep(call, counted, ttl, cell.value);
  return { protocol, cell, round: runRound(settings, swapOne, { timeout: ttl }) };
}

/**
 * Undoes a failed attempt. `given`: its nonce is put back, because the message may be tried again. Where the attempt was
 * not answered, it may be executed later, and would keep the lock for nobody: it finds a tombstone.
 */
async function undoSwap(
  settings: Settings,
  { cell, round }: Pick<Swap, "cell" | "round">,
  given: LockJSON | undefined,
): Promise<void> {
  const { runtime, backoff, wait } = settings;
  const next = given && { values: cell.keys.map(() => holderText(given)), ttl: given.ttl };
  const undoOne = (call: Ask) => end(call, cell, next);
  const first = undoQuietly(settings, round.calls, unlessRefused(undoOne));
  let undoing: Round<Answer> | undefined = first;
  // Where the swap has a quorum and its undo has none, everybody would take this attempt for a holder, until the ttl.
  const undone = retry<void>({ runtime, backoff, wait: given?.ttl ?? wait }, {}, async () => {
    const { result } = undoing ?? runRound(settings, undoOne);
    undoing = undefined;
    return (await result) === "unavailable" ? { next: "pause", end: () => undefined } : { value: undefined };
  }).catch(() => undefined);
  runInBackground(settings, undone);
  await mostlyDone(settings, first);
  await settledWithin(runtime, wait, undone);
}

/**
 * Whether those that resume it at once may have kept it from each other: no other has a quorum, and it is not gone from so
 * many endpoints that nobody can have one.
 *
 * @param own the values of this call: what undoes its earlier attempts may not be executed yet
 */
function mayBeSplit(round: Round<CellAnswer>, own: ReadonlySet<string>): boolean {
  const { length } = round.calls;
  const quorum = quorumOf(length);
  const lost = round.answers().flatMap(({ outcome, other }) => (outcome === "lost" ? [other] : []));
  const others = lost.filter(Boolean);
  const isTaken = others.some(
    (one) => !own.has(one!) && others.filter((other) => other === one).length >= quorum,
  );
  const gone = lost.length - others.length;
  return others.length > 0 && !isTaken && !isVeto(gone, length);
}

/** What is in the message, checked. */
function checkMessage(json: LockJSON): LockJSON {
  // Not shown: it contains the lock's token.
  if (!Array.isArray(json?.resources))
    throw new TypeError(`${notHandedOver}, as JSON.parse(text) returns it`);
  const { resources, prefix, nonce, note, ttl, fence, endpoints } = json;
  if (typeof nonce !== "string" || nonce.length !== tokenLength) throw new TypeError(notHandedOver);
  checkPrefix("prefix", prefix);
  checkInteger("ttl (ms)", ttl, 10, maxTimerDelay);
  if (note !== undefined) checkText("note", note);
  if (fence !== undefined) checkInteger("fence", fence, 1, Number.MAX_SAFE_INTEGER);
  const more = { ...(note && { note }), ...(fence && { fence }) };
  return { resources: checkResources(resources), prefix, nonce, ttl, endpoints, ...more };
}

/** A quorum of other endpoints would say nothing of the lock. */
function checkEndpoints({ endpoints: given }: LockJSON, { endpoints }: Settings): void {
  const names = endpoints.map(({ name }) => name);
  if (Array.isArray(given) && [...given].sort().join("\n") === [...names].sort().join("\n")) return;
  throw new RangeError(
    `resume needs the endpoints that acquired the lock: ${String(given)}; this client has ${names}`,
  );
}
