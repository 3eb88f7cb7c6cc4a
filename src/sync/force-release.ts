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

/** The keys of each synchronizer that are freed. */
export const kindsOf = {
  Semaphore: ["limit"],
  ReadWriteLock: ["read-write", "writers"],
  FairLock: ["fair", "queue"],
  ReentrantLock: ["reentrant"],
  CountDownLatch: ["latch"],
  CyclicBarrier: ["barrier"],
  // The fence stays, because later runs must have larger ones.
  once: ["once", "once-end"],
  // The messages stay.
  Mailbox: ["mailbox"],
} as const;

/** The name that a synchronizer is imported by. */
export type SynchronizerKind = keyof typeof kindsOf;

/**
 * Frees a synchronizer, even while it is held. For operators: stop the holders first, because a holder relies on its
 * lock until its validity ends or it extends, verifies or releases it.
 *
 * - `Semaphore`, `ReadWriteLock`, `ReentrantLock`, `FairLock`: all holds are gone. The semaphore's limit is
 *   forgotten.
 * - `CountDownLatch`: it is closed, without arrivals and count. Waiting calls go on at the new one.
 * - `CyclicBarrier`: arrivals and parties are forgotten. Waiting parties arrive again, but parties that gave up have
 *   to call again.
 * - `once`: the interval is over for later calls. A running run is not notified.
 * - `Mailbox`: the turn is free. The messages stay.
 *
 * If its request is executed late, it also frees locks that were acquired meanwhile.
 *
 * @param options `prefix`, `timeout` and `onEvent`. Default: the client's
 * @returns whether there was anything to free
 * @throws QuorumError when too few endpoints answered. Some may have freed it
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
  // Nobody knows the largest limit in use.
  if (kind === "Semaphore") keys.push(...slotsOf(settings, name));
  // The second key of `once` outlives its interval.
  return freeKeys(settings, name, keys, kind === "once" ? 1 : keys.length);
}

const maxTries = 10;

/**
 * A late request would bring deleted arrivals back, so a later generation supersedes them.
 *
 * @param laterThan makes a later generation, of no run that there was
 */
async function supersede(
  settings: Settings,
  place: ArrivalPlace,
  laterThan: (latest: string, runtime: Runtime) => string,
): Promise<boolean> {
  // If a quorum has nothing to free, a slow endpoint may have.
  const moveTo = async (to: string) => {
    const ask = (call: Ask) => queryEndpoint(call, settings, place, { to });
    return (await query(settings, ["free", [place.name]], ask)).answers();
  };
  let answers = await moveTo("");
  if (answers.every(({ expected }) => expected === 0)) return false;
  for (let tries = 0; tries < maxTries; tries += 1) {
    const next = laterThan(latestOf(answers), settings.runtime);
    answers = await moveTo(next);
    // Parties that came meanwhile may have moved on with the old arrivals.
    const moved = answers.filter(({ generation }) => generation === next).length;
    if (moved >= quorumOf(settings.endpoints.length)) return true;
  }
  throw new QuorumError("free", [place.name], []);
}

function laterEpoch(latest: string, runtime: Runtime): string {
  const epoch = Math.max(Math.floor(runtime.now()), Number(latest.slice(2, 18)) + 1);
  return `g2${String(epoch).padStart(16, "0")}${randomToken(runtime)}0`;
}

/** Waiting parties may be about to move to the next level. */
function laterRun(latest: string, runtime: Runtime): string {
  return generation(levelOf(latest) + 2, randomToken(runtime));
}
