import type { Answer } from "./quorum.ts";
import { type Call, drop, isNative, replace, runScript, take } from "./register.ts";
import { type Runtime, randomToken, tokenLength } from "./runtime.ts";
import { dropScript, grantScript, raiseScript, renewScript } from "./scripts.ts";

// What a round asks for, and what becomes of it on one endpoint. A single resource without fencing is a plain
// register; several resources, an owner of one's own and fencing need a script over all their keys.

/** The resources, the value that stands for their holder in Redis, and how they are asked for. */
export interface Grant {
  readonly resources: readonly string[];
  readonly prefix: string;
  /** Fresh in every round, so that a late drop of one round can never delete the grant of the next. */
  readonly nonce: string;
  /** The caller's own token, `""` when there is none: the nonce alone is the owner then. */
  readonly owner: string;
  /** How long an idle fence counter is kept, in ms; 0: no fencing. */
  readonly fenceRetention: number;
}

/** What {@link takeGrant} may hear. */
export type GrantAnswer = Answer & {
  readonly fence?: number;
  /** ms until the obstacle expires, where the endpoint said so. */
  readonly retryAfter?: number;
};

// A request that is executed later than this after it was given up has been held up longer than any proxy
// or platform keeps one.
const tombstoneRetention = 60_000;

/** A grant with a nonce of its own. */
export function newGrant(runtime: Runtime, request: Omit<Grant, "nonce">): Grant {
  return { ...request, nonce: randomToken(runtime) };
}

/**
 * The key of one `kind` for a resource, tagged so that all keys of a resource are in one Redis Cluster slot.
 * A resource with a `{tag}` of its own keeps it. No two resources, and no two kinds, share a key.
 */
export function keyOf(prefix: string, kind: string, resource: string): string {
  // Redis Cluster looks at the first brace only, and ignores an empty tag.
  if (/^[^{]*\{[^}]+\}/.test(resource)) return `${prefix}:${kind}::${resource}`;
  return `${prefix}:${kind}:{${resource.replace(/[%}]/g, encodeURIComponent)}}`;
}

/** Asks one endpoint for the grant. `clock` is the client's wall clock in ms, the least fence to draw. */
export async function takeGrant(call: Call, grant: Grant, ttl: number, clock: number): Promise<GrantAnswer> {
  const value = storedValue(grant);
  const locks = keys(grant, "lock");
  if (!isScripted(grant)) {
    return { outcome: (await take(call, locks[0]!, value, ttl)) ? "granted" : "held" };
  }
  const counters = grant.fenceRetention ? keys(grant, "fence") : [];
  const count = locks.length;
  const reply = await runScript(
    call,
    grantScript,
    [...locks, tombstoneKey(grant), ...counters],
    [value, ttl, fromOf(grant), count, clock, grant.fenceRetention],
    (answer) => (isEcho(answer, value) ? 1 + count + counters.length : 2),
  );
  if (isEcho(reply, value)) {
    if (!grant.fenceRetention) return { outcome: "granted" };
    const fence = Number(reply[1]);
    // A fence that JavaScript cannot count with orders nothing.
    if (!Number.isSafeInteger(fence) || fence < 1)
      throw new Error(`the fence ${fence} is not a safe integer`);
    return { outcome: "granted", fence };
  }
  if (!Array.isArray(reply) || reply[0] !== 0) throw new Error("unexpected reply to a grant");
  const retryAfter = Number(reply[1]);
  return retryAfter > 0 ? { outcome: "held", retryAfter } : { outcome: "held" };
}

/** Raises the fence counters of a grant to `fence`. */
export async function raiseFence(call: Call, grant: Grant, fence: number): Promise<Answer> {
  const value = storedValue(grant);
  const names = [...keys(grant, "lock"), ...keys(grant, "fence")];
  const reply = await runScript(
    call,
    raiseScript,
    names,
    [value, fromOf(grant), fence, grant.fenceRetention],
    (answer) => (answer === value ? 1 + grant.resources.length : 1),
  );
  return { outcome: reply === value ? "granted" : "lost" };
}

/** Renews the grant on one endpoint; with ttl 0 it only looks whether it is still there. */
export async function renewGrant(call: Call, grant: Grant, ttl: number): Promise<Answer> {
  const value = storedValue(grant);
  const locks = keys(grant, "lock");
  let renewed: boolean;
  if (ttl > 0 && isNative(call) && isPlain(grant)) {
    renewed = await replace(call, locks[0]!, value, value, ttl);
  } else {
    const writes = ttl > 0 ? locks.length : 0;
    const reply = await runScript(call, renewScript, locks, [value, fromOf(grant), ttl], (answer) =>
      answer === value ? 1 + writes : 1,
    );
    renewed = reply === value;
  }
  return { outcome: renewed ? "granted" : "lost" };
}

/** Frees what the holder has on one endpoint: for an owner of one's own, whichever handle took it. */
export function releaseGrant(call: Call, grant: Grant): Promise<Answer> {
  return dropKeys(call, grant, fromOf(grant), false);
}

/**
 * Takes back this very round's grant, which may or may not have been executed, or may yet be: where a script
 * asks for grants, a tombstone makes sure that a late one is refused.
 */
export function withdrawGrant(call: Call, grant: Grant): Promise<Answer> {
  return dropKeys(call, grant, 1, isScripted(grant));
}

async function dropKeys(call: Call, grant: Grant, from: number, bury: boolean): Promise<Answer> {
  const value = storedValue(grant);
  const locks = keys(grant, "lock");
  if (from === 1 && locks.length === 1 && !bury) {
    return { outcome: (await drop(call, locks[0]!, value)) ? "granted" : "lost" };
  }
  const reply = await runScript(
    call,
    dropScript,
    bury ? [...locks, tombstoneKey(grant)] : locks,
    bury ? [value, from, tombstoneRetention] : [value, from],
    (answer) => 1 + (answer === value ? locks.length : 0) + (bury ? 1 : 0),
  );
  return { outcome: reply === value ? "granted" : "lost" };
}

/** What stands at the keys. It begins with a letter, so that no client takes it for JSON or a number. */
function storedValue({ nonce, owner }: Grant): string {
  return nonce + owner;
}

/** Whose a stored value is: an owner's, or nobody's but the handle's own. */
export function holderOf(value: string): string {
  return value.slice(tokenLength) || value;
}

/** Where the comparison of two values begins: at the owner's part, or at the start. */
function fromOf({ owner }: Grant): number {
  return owner ? tokenLength + 1 : 1;
}

function isPlain({ owner, resources }: Grant): boolean {
  return resources.length === 1 && !owner;
}

function isScripted(grant: Grant): boolean {
  return !isPlain(grant) || grant.fenceRetention > 0;
}

function keys({ prefix, resources }: Grant, kind: string): string[] {
  return resources.map((resource) => keyOf(prefix, kind, resource));
}

function tombstoneKey({ prefix, resources, nonce }: Grant): string {
  return `${keyOf(prefix, "void", resources[0]!)}:${nonce}`;
}

function isEcho(reply: unknown, value: string): reply is unknown[] {
  return Array.isArray(reply) && reply[0] === value;
}
