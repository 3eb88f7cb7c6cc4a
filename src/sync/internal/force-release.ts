import type { Call } from "../../endpoints/call.ts";
import { QuorumError } from "../../errors.ts";
import type { Settings } from "../../lock/options.ts";
import { runRound } from "../../quorum/round.ts";
import { type Answer, quorumOf } from "../../quorum/tally.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, type Script, unexpectedReply } from "../../redis/script.ts";
import type { Redlock } from "../../redlock.ts";
import { randomToken } from "../../runtime.ts";
import { defaultTtl } from "./arrivals.ts";
import { checkName, type SyncOptions, syncSettings } from "./hold.ts";

/**
 * Frees a synchronizer on one endpoint.
 *
 * ARGV: 1. a nonce; 2. what to do:
 *    `keys`: delete all KEYS, of which the first ARGV[3] say whether there was anything;
 *    `slots`: the same, unless the limit, at the first key, is larger than the number of slots, the other keys;
 *    `arrivals`: move to the generation ARGV[3], `call`: let the call ARGV[3] take the place of the last one; either is
 *    kept for ARGV[4] ms, or for as long as what it replaces; where it is not a later one, nothing changes.
 *
 * Replies: {nonce, 1 if there was anything, else 0}; of `slots`: {nonce, -limit} where more keys are needed; of
 * `arrivals` and `call` behind it the generation or call that stood there, and for how many ms. The nonce is
 * unguessable, so no client in between can invent these.
 */
export const freeScript: Script = {
  source: `local nonce, op, key = ARGV[1], ARGV[2], KEYS[1]
if op == "arrivals" or op == "call" then
  local to, left, at, had = ARGV[3], redis.call("PTTL", key), "", false
  if op == "call" then
    at = redis.call("GET", key) or ""
    had = string.sub(at, 18, 18) == "t"
  else
    local found = redis.call("HMGET", key, "g", "n")
    at, had = found[1] or "", found[2]
  end
  if to > at then
    redis.call("DEL", key)
    if op == "call" then redis.call("SET", key, to) else redis.call("HSET", key, "g", to) end
    redis.call("PEXPIRE", key, math.max(left, tonumber(ARGV[4])))
  end
  return {nonce, had and 1 or 0, at, left}
end
if op == "slots" then
  local limit = tonumber(redis.call("GET", key) or 0)
  if limit >= #KEYS then return {nonce, -limit} end
end
local there = redis.call("EXISTS", unpack(KEYS, 1, ARGV[3]))
redis.call("DEL", unpack(KEYS))
return {nonce, there > 0 and 1 or 0}`,
  sha: {
    redis: "13a6bb24b6a424fe414b7034d199347117befee2",
    upstash: "66bff9d7015db35b54c9c244f3cbfc49067fe486",
  },
};

/** Which synchronizer a name is of: what it is imported by. */
export type SynchronizerKind =
  | "Semaphore"
  | "ReadWriteLock"
  | "FairLock"
  | "ReentrantLock"
  | "CountDownLatch"
  | "CyclicBarrier"
  | "once"
  | "debounce";

/** Kinds of the keys that stand in the way of others, by synchronizer. */
const kindsOf = {
  Semaphore: ["limit"],
  ReadWriteLock: ["read-write", "writers"],
  FairLock: ["fair", "queue"],
  ReentrantLock: ["reentrant"],
  CountDownLatch: ["latch"],
  CyclicBarrier: ["barrier"],
  // The fence stays: later runs have larger ones.
  once: ["once", "once-end"],
  debounce: ["debounce"],
} as const satisfies Record<SynchronizerKind, readonly string[]>;

/** One endpoint's answer. */
interface Freed extends Answer {
  /** Whether there was anything to free. */
  readonly had: boolean;
  /** The limit of a semaphore, if it has more slots than were named. */
  readonly limit: number;
  /** The generation of a latch or barrier; empty: none. */
  readonly at: string;
  /** For how many ms the generation would have been kept. */
  readonly left: number;
}

/**
 * Frees a synchronizer, whoever holds it. For operators: nobody else is asked, and a holder relies on what it holds
 * until its validity ends or it extends, verifies or releases it. So stop the holders first.
 *
 * - `Semaphore`, `ReadWriteLock`, `ReentrantLock`, `FairLock`: all holds are gone. Their holders learn of it by
 *   `LockLostError` at their next extension, `verify()` says false, and so does `release()`. The semaphore's limit is
 *   forgotten. Those who wait go on waiting, and may be served at once; writers and tickets enter again when they ask.
 * - `CountDownLatch`: it is closed, nobody has arrived, and its count is forgotten; so is that of one begun with a wrong
 *   count. Requests that are under way count for the latch before it, and no longer for this one. A call that goes on
 *   arrives at the new one.
 * - `CyclicBarrier`: nobody has arrived, and the number of parties is forgotten. Parties that wait arrive again by
 *   themselves; those that had given up waiting have to call again. Generations go on with larger numbers.
 * - `once`: the interval is over for those who call from now on; a run that goes on is not told.
 * - `debounce`: the last call does not run, nor does any before it: they return `ran: false`.
 *
 * A request of this function that is executed late frees what was taken meanwhile; so do not repeat it without need.
 *
 * @param kind what it is, by the name that it is imported by
 * @param options `prefix`, `timeout` and `onEvent` count; default: the client's
 * @returns whether there was anything to free
 * @throws QuorumError when too few endpoints answered; some may have freed it
 * @throws TypeError | RangeError when an argument is wrong
 * @example
 * await forceRelease(redlock, "CountDownLatch", `import:${id}`); // it was begun with a wrong count
 */
export async function forceRelease(
  redlock: Redlock,
  kind: SynchronizerKind,
  name: string,
  options: Pick<SyncOptions, "prefix" | "timeout" | "onEvent"> = {},
): Promise<boolean> {
  checkName(name);
  if (!Object.hasOwn(kindsOf, kind)) throw new TypeError(`there is no synchronizer of kind ${String(kind)}`);
  const settings = syncSettings(redlock, options);
  const keys = kindsOf[kind].map((part) => keyOf(settings.prefix, part, name));
  if (isSuperseded(kind)) return supersede(settings, name, kind, keys);
  // When the last interval of `once` ended is remembered for longer than it is in anybody's way.
  const counted = kind === "once" ? 1 : keys.length;
  if (kind !== "Semaphore") return anyHad(await free(settings, name, keys, ["keys", counted]));
  for (let limit = 0; ; ) {
    // An endpoint says how many slots there are; then they are named, as Redis Cluster asks for.
    const slots = Array.from({ length: limit }, (_, slot) => keyOf(settings.prefix, `slot:${slot}`, name));
    const answers = await free(settings, name, [...keys, ...slots], ["slots", 1 + limit]);
    const most = Math.max(...answers.map((answer) => answer.limit));
    if (most <= limit) return anyHad(answers);
    limit = most;
  }
}

/** What is not deleted, so that no late request brings it back: something later takes its place. */
type Superseded = "CountDownLatch" | "CyclicBarrier" | "debounce";

function isSuperseded(kind: SynchronizerKind): kind is Superseded {
  return kind === "CountDownLatch" || kind === "CyclicBarrier" || kind === "debounce";
}

/** How often a generation is looked for that is later than all others. */
const tries = 10;

async function supersede(
  settings: Settings,
  name: string,
  kind: Superseded,
  keys: readonly string[],
): Promise<boolean> {
  const isCall = kind === "debounce";
  const least = isCall ? 1 : defaultTtl;
  const replace = (to: string, ttl: number) =>
    free(settings, name, keys, [isCall ? "call" : "arrivals", to, ttl]);
  let answers = await replace("", least);
  if (!anyHad(answers)) return false;
  for (let left = tries; left > 0; left -= 1) {
    const latest = answers
      .map(({ at }) => at)
      .sort()
      .at(-1)!;
    const to = laterThan(latest, kind, settings);
    answers = await replace(to, Math.max(least, ...answers.map((answer) => answer.left)));
    // Calls that came meanwhile have taken its place themselves; parties have moved on with what was to be freed.
    const moved = answers.filter(({ at }) => isCall || at <= to).length;
    if (moved >= quorumOf(settings.endpoints.length)) return true;
  }
  throw new QuorumError("free", [name], []);
}

/** Later than another, and of no run that there was; how, is for each kind to say. */
function laterThan(latest: string, kind: Superseded, { runtime }: Settings): string {
  const token = randomToken(runtime);
  // Greater than the token of any call in the same place.
  if (kind === "debounce") return `${latest.slice(0, 17)}u${token.slice(1)}`;
  const text = (number: number) => String(number).padStart(16, "0") + token;
  // Those who wait at a barrier may be about to move to the next level.
  if (kind === "CyclicBarrier") return `g${text(Number(latest.slice(1, 17)) + 2)}`;
  return `g2${text(Math.max(Math.floor(runtime.now()), Number(latest.slice(2, 18)) + 1))}0`;
}

function anyHad(answers: readonly Freed[]): boolean {
  return answers.some(({ had }) => had);
}

/** Asks every endpoint, and waits for all answers. */
async function free(
  settings: Settings,
  name: string,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<Freed[]> {
  const { endpoints, timeout } = settings;
  const round = runRound(settings, (call) => freeOne(call, settings, keys, args));
  await round.done;
  const answers = round.answers.flatMap((answer) => (answer && answer.outcome !== "error" ? [answer] : []));
  if (answers.length < quorumOf(endpoints.length)) throw new QuorumError("free", [name], round.votes());
  return answers;
}

async function freeOne(
  call: Call,
  { runtime }: Settings,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<Freed> {
  const nonce = randomToken(runtime);
  const reply = await runScript(call, freeScript, keys, [nonce, ...args]);
  const [echo, had, at = "", left = 0] = Array.isArray(reply) ? reply : [];
  if (
    echo !== nonce ||
    !Number.isSafeInteger(had) ||
    had > 1 ||
    typeof at !== "string" ||
    !Number.isFinite(left)
  ) {
    throw unexpectedReply();
  }
  return { outcome: "granted", had: had === 1, limit: Math.max(0, -had), at, left };
}
