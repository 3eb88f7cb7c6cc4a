import { type EndpointError, QuorumError } from "../errors.ts";
import { type Answer, quorumOf, runRound } from "../quorum/round.ts";
import { counterIn, isSnapshot, runScript } from "../redis/register.ts";
import { registerScript } from "../redis/register-script.ts";
import { randomToken } from "../runtime.ts";
import { holderOf, keyOf } from "./lock-request.ts";
import type { Settings } from "./options.ts";

// What operators do: look at a resource, and free it.

/** What stands at a resource. */
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

/** What one endpoint knows of a resource. */
export interface InspectionVote {
  readonly endpoint: string;
  readonly outcome: "held" | "free" | "error";
  /** ms until the endpoint frees it. */
  readonly remaining?: number;
  readonly fence?: number;
  readonly cause?: EndpointError;
}

type LockSnapshot = Answer & { readonly holder: string; readonly remaining: number; readonly fence: number };

/** See {@link Redlock.inspect}. */
export async function inspect(settings: Settings, resource: string): Promise<Inspection> {
  const { endpoints, prefix } = settings;
  const keys = ["lock", "void", "fence"].map((kind) => keyOf(prefix, kind, resource));
  const round = runRound(settings, settings.timeout, async (call): Promise<LockSnapshot> => {
    const reply = await runScript(call, registerScript, keys, ["look", "", 1, 1, 0]);
    if (!Array.isArray(reply) || reply.length !== 3) throw new Error("unexpected reply to a script");
    const [value, remaining, counter] = reply;
    const fence = counter === "" ? 0 : counterIn(counter);
    if (!isSnapshot(call, value, remaining) || fence === undefined) {
      throw new Error("unexpected reply to a script");
    }
    const holder = holderOf(String(value));
    return { outcome: holder ? "held" : "granted", holder, remaining: Math.max(0, remaining), fence };
  });
  await round.done;

  const snapshots = round.answers.flatMap((answer) => (answer && answer.outcome !== "error" ? [answer] : []));
  const quorum = quorumOf(endpoints.length);
  const silent = endpoints.length - snapshots.length;
  // Whoever holds it is the holder on a quorum; it is free once fewer than a quorum are left.
  let most: number[] = [];
  for (const { holder } of snapshots) {
    const expiries = snapshots.flatMap((snapshot) =>
      holder && snapshot.holder === holder ? [snapshot.remaining] : [],
    );
    if (expiries.length > most.length) most = expiries;
  }
  const held = most.length >= quorum;
  if (!held && most.length + silent >= quorum) throw new QuorumError("inspect", [resource], round.votes());
  return {
    held,
    remaining: (held && most.sort((a, b) => b - a)[quorum - 1]) || 0,
    fence: Math.max(...snapshots.map(({ fence }) => fence)) || undefined,
    votes: endpoints.map(({ name }, index): InspectionVote => {
      const answer = round.answers[index]!;
      if (answer.outcome === "error") return { endpoint: name, ...answer };
      const { holder, remaining, fence } = answer;
      return { endpoint: name, outcome: holder ? "held" : "free", remaining, ...(fence && { fence }) };
    }),
  };
}

/** See {@link Redlock.forceRelease}. */
export async function forceRelease(settings: Settings, resource: string): Promise<boolean> {
  const { endpoints, runtime, prefix, timeout } = settings;
  const key = keyOf(prefix, "lock", resource);
  // A plain DEL would do, but its reply can be invented.
  const echo = randomToken(runtime);
  const round = runRound(settings, timeout, async (call): Promise<Answer> => {
    const reply = await runScript(call, registerScript, [key], ["free", echo, 1, 1, 0]);
    const [said] = Array.isArray(reply) && reply.length === 1 ? reply : [];
    if (said !== echo && said !== 0) throw new Error("unexpected reply to a script");
    // Billed beside the script itself.
    call.cost.commands += 1;
    return { outcome: said === echo ? "granted" : "lost" };
  });
  await round.done;
  const answers = round.answers.filter((answer) => answer?.outcome !== "error");
  if (answers.length < quorumOf(endpoints.length)) throw new QuorumError("free", [resource], round.votes());
  return answers.some((answer) => answer?.outcome === "granted");
}
