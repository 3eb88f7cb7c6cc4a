import { checkText } from "../check/check.ts";
import { type EndpointError, QuorumError } from "../errors/errors.ts";
import { type LockClient, settingsOf } from "../lock/client.ts";
import { parseHolder } from "../lock/note.ts";
import { checkLockOptions, type LockOptions } from "../lock/options.ts";
import { query } from "../quorum/query.ts";
import { type Answer, quorumOf } from "../quorum/tally.ts";
import { isSnapshot, readCounter } from "../redis/cell.ts";
import { keyOf } from "../redis/keys.ts";
import { peekScript } from "../redis/peek.lua.ts";
import { foreignData, runScript, unexpectedReply } from "../redis/script.ts";
import { sha256Hex } from "../runtime/bytes.ts";
import { freeKeys } from "./free-keys.ts";

/** The state of a resource. */
export interface Inspection {
  /** On a quorum. */
  readonly held: boolean;
  /**
   * The first 12 hex digits of the SHA-256 of the holder's `lock.token`. The token itself is a secret: with it anybody
   * could release the lock.
   */
  readonly holder?: string | undefined;
  readonly note?: string | undefined;
  /** ms until it would be free by itself, or 0 if it is free. */
  readonly remaining: number;
  /** The largest that any endpoint has drawn. */
  readonly fence: number | undefined;
  readonly votes: readonly InspectionVote[];
}

/** The state of a resource at one endpoint. */
export interface InspectionVote {
  readonly endpoint: string;
  readonly outcome: "held" | "free" | "error";
  /** As in {@link Inspection.holder}. */
  readonly holder?: string;
  /** ms until the endpoint frees it. */
  readonly remaining?: number;
  readonly fence?: number;
  readonly cause?: EndpointError;
}

type LockSnapshot = Answer & {
  readonly holder: string;
  readonly remaining: number;
  readonly fence: number;
};

/**
 * Reads the state of a resource and changes nothing.
 *
 * @throws QuorumError when too few endpoints answered
 *
 * @example
 * const { held, remaining } = await inspect(redlock, "invoice:42");
 */
export async function inspect(
  redlock: LockClient,
  resource: string,
  options: LockOptions = {},
): Promise<Inspection> {
  const settings = settingsOf(redlock, checkLockOptions(options));
  const name = checkResource(resource);
  const { endpoints, prefix } = settings;
  const keys = [keyOf(prefix, "lock", name), keyOf(prefix, "fence", name)];
  const round = await query(settings, ["inspect", [name]], async (call): Promise<LockSnapshot> => {
    const reply = await runScript(call, peekScript, keys, ["peek"]);
    if (!Array.isArray(reply) || reply.length !== 3) throw unexpectedReply();
    const [value, remaining, counter] = reply;
    if (!isSnapshot(call, value, remaining)) throw unexpectedReply();
    // MGET finds nothing at a key of another type.
    if (value === "" && remaining !== -2) throw new Error(foreignData([keys[0]]));
    const fence = counter === "" ? 0 : readCounter(counter);
    if (fence === undefined) throw new Error(foreignData([keys[1]]));
    const holder = String(value);
    return { outcome: holder ? "held" : "granted", holder, remaining: Math.max(0, remaining), fence };
  });
  const answers = round.answers();
  const quorum = quorumOf(endpoints.length);
  const silent = endpoints.length - answers.length;
  const { holder: winner, expiries } = mostFrequentHolder(answers);
  const held = expiries.length >= quorum;
  if (!held && expiries.length + silent >= quorum) throw new QuorumError("inspect", [name], round.votes());
  const digests = new Map<string, string>();
  for (const { holder } of answers) if (holder) digests.set(holder, await digestOf(holder));
  return {
    held,
    ...(held && { holder: digests.get(winner), note: parseHolder(winner).note }),
    // Until fewer than a quorum have it.
    remaining: (held && expiries[quorum - 1]) || 0,
    fence: Math.max(...answers.map(({ fence }) => fence)) || undefined,
    votes: round.calls.map(({ answer: known, endpoint }): InspectionVote => {
      const answer = known!;
      if (answer.outcome === "error") return { endpoint: endpoint.name, ...answer };
      const { holder, remaining, fence } = answer;
      const outcome = holder ? "held" : "free";
      const digest = digests.get(holder);
      const vote = { endpoint: endpoint.name, outcome, remaining, ...(fence && { fence }) } as const;
      return digest ? { ...vote, holder: digest } : vote;
    }),
  };
}

/** Several resources have no common state. */
function checkResource(resource: string): string {
  if (Array.isArray(resource)) throw new TypeError("resource must be one name: call this once for each");
  return checkText("resource", resource, 1_024);
}

export async function digestOf(holder: string): Promise<string> {
  return (await sha256Hex(new TextEncoder().encode(parseHolder(holder).nonce))).slice(0, 12);
}

function mostFrequentHolder(snapshots: readonly LockSnapshot[]): {
  readonly holder: string;
  readonly expiries: readonly number[];
} {
  let most: { holder: string; expiries: number[] } = { holder: "", expiries: [] };
  for (const { holder } of snapshots) {
    const same = snapshots.filter((snapshot) => holder && snapshot.holder === holder);
    if (same.length > most.expiries.length)
      most = { holder, expiries: same.map(({ remaining }) => remaining) };
  }
  most.expiries.sort((a, b) => b - a);
  return most;
}

/**
 * Frees a resource, no matter who holds it. The holder relies on its validity until its next extension or verification,
 * so only fencing protects its writes.
 *
 * @returns whether there was anything to free
 * @throws QuorumError when too few endpoints answered
 *
 * @example
 * await forceRelease(redlock, "invoice:42");
 */
export async function forceRelease(
  redlock: LockClient,
  resource: string,
  options: LockOptions = {},
): Promise<boolean> {
  const settings = settingsOf(redlock, checkLockOptions(options));
  const name = checkResource(resource);
  return freeKeys(settings, name, [keyOf(settings.prefix, "lock", name)]);
}
