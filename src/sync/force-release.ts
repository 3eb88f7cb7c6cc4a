import { checkText } from "../check/check.ts";
import type { Ask } from "../endpoints/ask.ts";
import { QuorumError } from "../errors/errors.ts";
import { freeKeys } from "../inspect/free-keys.ts";
import { type LockClient, settingsOf } from "../lock/client.ts";
import type { Settings } from "../lock/options.ts";
import { query } from "../quorum/query.ts";
import { quorumOf } from "../quorum/tally.ts";
import { keyOf } from "../redis/keys.ts";
import { type Runtime, randomToken } from "../runtime/runtime.ts";
import {
  type ArrivalPlace,
  defaultTtl,
  generation,
  latestOf,
  levelOf,
  queryEndpoint,
} from "./internal/arrivals.ts";
import { checkSyncOptions, type SyncOptions, syncSchema } from "./internal/hold.ts";
import { slotsOf } from "./semaphore.ts";

/** By synchronizer: the kinds of the keys to free. The first is there while it is in use. */
export const kindsOf = {
  Semaphore: ["limit"],
  ReadWriteLock: ["read-write", "writers"],
  FairLock: ["fair", "queue"],
  ReentrantLock: ["reentrant"],
  CountDownLatch: ["latch"],
  CyclicBarrier: ["barrier"],
  // The fence stays: later runs have larger ones.
  once: ["once", "once-end"],
  Mailbox: ["mailbox"],
} as const;

/** The kind of a synchronizer: the name that it is imported by. */
export type SynchronizerKind = keyof typeof kindsOf;

/**
 * Frees a synchronizer, even while it is held. For operators: no holder is asked, and a holder relies on its lock until its
 * validity ends or it extends, verifies or releases it. So stop the holders first.
 *
 * - `Semaphore`, `ReadWriteLock`, `ReentrantLock`, `FairLock`: all holds are gone. Their next extension throws
 *   `LockLostError`, and `verify()` and `release()` return false. The semaphore's limit is forgotten. Waiters go on
 *   waiting, and may be served at once. Announcements of writers and tickets return with their next request.
 * - `CountDownLatch`: it is closed, without arrivals and without a count. So is one that was begun with a wrong count.
 *   Requests under way count for the latch before the reset, not for this one. A call that goes on arrives at the new one.
 * - `CyclicBarrier`: there are no arrivals, and the number of parties is forgotten. Waiting parties arrive again by themselves.
 *   Parties that gave up have to call again. The numbers of generations go on growing.
 * - `once`: the interval is over for later calls. A running run is not notified.
 *
 * A request of this function that is executed late also frees locks that were acquired meanwhile. Do not repeat it without
 * need.
 *
 * @param kind the name that the synchronizer is imported by
 * @param name the synchronizer's own name
 * @param options `prefix`, `timeout` and `onEvent`. Default: the client's
 * @returns whether there was anything to free
 * @throws QuorumError when too few endpoints answered. Some may have freed it
 * @throws TypeError | RangeError when an argument is wrong. Nothing was sent
 * @example
 * await forceRelease(redlock, "CountDownLatch", `import:${id}`); // it was begun with a wrong count
 */
export async function forceRelease(
  redlock: LockClient,
  kind: SynchronizerKind,
  name: string,
  options: Pick<SyncOptions, "prefix" | "timeout" | "onEvent"> = {},
): Promise<boolean> {
  if (!Object.hasOwn(kindsOf, kind)) {
    const kinds = Object.keys(kindsOf).join(", ");
    throw new TypeError(`there is no synchronizer of kind ${String(kind)}; there are ${kinds}`);
  }
  checkText("name", name, 1_024);
  const { prefix, timeout, onEvent } = syncSchema;
  checkSyncOptions("forceRelease", options, { prefix, timeout, onEvent });
  const settings = settingsOf(redlock, { ttl: defaultTtl }, options);
  if (kind === "CountDownLatch") return supersede(settings, { kind: "latch", name }, laterEpoch);
  if (kind === "CyclicBarrier") return supersede(settings, { kind: "barrier", name }, laterRun);
  const keys = kindsOf[kind].map((part) => keyOf(settings.prefix, part, name));
  // Nobody knows the largest limit that any caller has, so all slots are named that there may be.
  if (kind === "Semaphore") keys.push(...slotsOf(settings, name));
  // The second key of `once` outlives its interval, so it does not show that there is anything to free.
  return freeKeys(settings, name, keys, kind === "once" ? 1 : keys.length);
}

/** How often a generation later than all others is tried. */
const maxTries = 10;

/**
 * Frees a latch or barrier: its generation is not deleted but superseded by a later one, so that no late request brings freed
 * arrivals back.
 *
 * @param laterThan makes a generation that is later than another, and of no run that there was
 */
async function supersede(
  settings: Settings,
  place: ArrivalPlace,
  laterThan: (latest: string, runtime: Runtime) => string,
): Promise<boolean> {
  // All endpoints are waited for: if a quorum has nothing to free, another one may have.
  const moveTo = async (to: string) => {
    const ask = (call: Ask) => queryEndpoint(call, settings, place, { to });
    return (await query(settings, ["free", [place.name]], ask)).answers();
  };
  let answers = await moveTo("");
  if (answers.every(({ expected }) => expected === 0)) return false;
  for (let tries = 0; tries < maxTries; tries += 1) {
    const next = laterThan(latestOf(answers), settings.runtime);
    answers = await moveTo(next);
    // Parties that came meanwhile may have moved on with the arrivals that were to be freed.
    const moved = answers.filter(({ generation }) => generation === next).length;
    if (moved >= quorumOf(settings.endpoints.length)) return true;
  }
  throw new QuorumError("free", [place.name], []);
}

/** The first generation of a latch's next epoch. */
function laterEpoch(latest: string, runtime: Runtime): string {
  const epoch = Math.max(Math.floor(runtime.now()), Number(latest.slice(2, 18)) + 1);
  return `g2${String(epoch).padStart(16, "0")}${randomToken(runtime)}0`;
}

/** A generation of another run of a barrier. Those who wait may be about to move to the next level. */
function laterRun(latest: string, runtime: Runtime): string {
  return generation(levelOf(latest) + 2, randomToken(runtime));
}
