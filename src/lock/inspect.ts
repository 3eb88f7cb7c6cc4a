import { type EndpointError, QuorumError } from "../errors.ts";
import { runRound } from "../quorum/round.ts";
import { type Answer, quorumOf } from "../quorum/tally.ts";
import { keyOf } from "../redis/keys.ts";
import { isSnapshot, readCounter } from "../redis/register.ts";
import { registerScript } from "../redis/register-script.ts";
import { runScript, unexpectedReply } from "../redis/script.ts";
import { randomToken } from "../runtime.ts";
import { holderOf } from "./lock-request.ts";
import { checkResources, type LockClient, type LockOptions, settingsOf } from "./options.ts";

// For operators: look at a resource, and free it.

/** The state of a resource. */
export interface Inspection {
  /** Whether someone holds it on a quorum. */
  readonly held: boolean;
  /** ms until it would be free by itself; 0 when it is not held. */
  readonly remaining: number;
  /** The largest fence that any endpoint has drawn; undefined when none is known. */
  readonly fence: number | undefined;
  /** By endpoint. */
  readonly votes: readonly InspectionVote[];
}

/** The state of a resource at one endpoint. */
export interface InspectionVote {
  readonly endpoint: string;
  readonly outcome: "held" | "free" | "error";
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
  const name = checkResources(resource)[0]!;
  const settings = settingsOf(redlock, options);
  const { endpoints, prefix } = settings;
  const keys = ["lock", "void", "fence"].map((kind) => keyOf(prefix, kind, name));
  const round = runRound(settings, async (call): Promise<LockSnapshot> => {
    const reply = await runScript(call, registerScript, keys, ["look", "", 1, 1, 0]);
    if (!Array.isArray(reply) || reply.length !== 3) throw unexpectedReply();
    const [value, remaining, counter] = reply;
    const fence = counter === "" ? 0 : readCounter(counter);
    if (!isSnapshot(call, value, remaining) || fence === undefined) throw unexpectedReply();
    const holder = holderOf(String(value));
    return { outcome: holder ? "held" : "granted", holder, remaining: Math.max(0, remaining), fence };
  });
  await round.done;

  const snapshots = round.answers.flatMap((answer) => (answer && answer.outcome !== "error" ? [answer] : []));
  const quorum = quorumOf(endpoints.length);
  const silent = endpoints.length - snapshots.length;
  const expiries = expiriesOfHolder(snapshots);
  const held = expiries.length >= quorum;
  if (!held && expiries.length + silent >= quorum) throw new QuorumError("inspect", [name], round.votes());
  return {
    held,
    // It is free once fewer than a quorum of endpoints have it.
    remaining: (held && expiries[quorum - 1]) || 0,
    fence: Math.max(...snapshots.map(({ fence }) => fence)) || undefined,
    votes: endpoints.map((endpoint, index): InspectionVote => {
      const answer = round.answers[index]!;
      if (answer.outcome === "error") return { endpoint: endpoint.name, ...answer };
      const { holder, remaining, fence } = answer;
      const outcome = holder ? "held" : "free";
      return { endpoint: endpoint.name, outcome, remaining, ...(fence && { fence }) };
    }),
  };
}

/** When each endpoint frees it that has the holder whom most of them have: the latest first. */
function expiriesOfHolder(snapshots: readonly LockSnapshot[]): number[] {
  let most: number[] = [];
  for (const { holder } of snapshots) {
    const same = snapshots.filter((snapshot) => holder && snapshot.holder === holder);
    if (same.length > most.length) most = same.map(({ remaining }) => remaining);
  }
  return most.sort((a, b) => b - a);
}

/**
 * Frees a resource, no matter who holds it. For operators: the holder learns of it at its next extension or verification only,
 * and relies on its validity until then; only fencing protects what it writes.
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
  const name = checkResources(resource)[0]!;
  const settings = settingsOf(redlock, options);
  const { endpoints, runtime, prefix } = settings;
  const key = keyOf(prefix, "lock", name);
  // A plain DEL would do, but a client in between could invent its reply.
  const echo = randomToken(runtime);
  const round = runRound(settings, async (call): Promise<Answer> => {
    const reply = await runScript(call, registerScript, [key], ["free", echo, 1, 1, 0]);
    const [replied] = Array.isArray(reply) && reply.length === 1 ? reply : [];
    if (replied !== echo && replied !== 0) throw unexpectedReply();
    return { outcome: replied === echo ? "granted" : "lost" };
  });
  await round.done;
  const answers = round.answers.filter((answer) => answer?.outcome !== "error");
  if (answers.length < quorumOf(endpoints.length)) throw new QuorumError("free", [name], round.votes());
  return answers.some((answer) => answer?.outcome === "granted");
}
