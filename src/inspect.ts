import { type EndpointError, QuorumError } from "./errors.ts";
import { holderOf, keyOf } from "./grant.ts";
import type { Settings } from "./options.ts";
import { type Answer, ask, quorumOf } from "./quorum.ts";
import { runScript, send } from "./register.ts";
import { inspectScript } from "./scripts.ts";

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

type Sight = Answer & { readonly holder: string; readonly remaining: number; readonly fence?: number };

/** See {@link Redlock.inspect}. */
export async function inspect(settings: Settings, resource: string): Promise<Inspection> {
  const { endpoints, prefix } = settings;
  const keys = [keyOf(prefix, "lock", resource), keyOf(prefix, "fence", resource)];
  const round = ask(settings, settings.timeout, async (call): Promise<Sight> => {
    const reply = await runScript(call, inspectScript, keys, [], () => 2);
    if (!Array.isArray(reply) || reply.length !== 3) throw new Error("unexpected reply to an inspection");
    const [value, remaining, fence] = reply.map(String) as [string, string, string];
    const seen = {
      holder: holderOf(value),
      remaining: Math.max(Number(remaining), 0),
      ...(fence && { fence: Number(fence) }),
    };
    return { outcome: value ? "held" : "granted", ...seen };
  });
  await round.done;

  const quorum = quorumOf(endpoints.length);
  const sights = round.answers.flatMap((answer) => (answer && answer.outcome !== "error" ? [answer] : []));
  const counts = new Map<string, number>();
  for (const { holder } of sights) if (holder) counts.set(holder, (counts.get(holder) ?? 0) + 1);
  const [most, count] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? ["", 0];
  const silent = endpoints.length - sights.length;
  const held = count >= quorum;
  if (!held && count + silent >= quorum) throw new QuorumError("inspect", [resource], round.votes());

  const expiries = sights.flatMap(({ holder, remaining }) => (holder === most ? [remaining] : []));
  const fences = sights.flatMap(({ fence }) => fence ?? []);
  return {
    held,
    // It is free once fewer than a quorum are left.
    remaining: held ? expiries.sort((a, b) => b - a)[quorum - 1]! : 0,
    fence: fences.length > 0 ? Math.max(...fences) : undefined,
    votes: endpoints.map(({ name }, index) => {
      const answer = round.answers[index]!;
      if (answer.outcome === "error") return { endpoint: name, ...answer };
      const { holder, outcome, ...seen } = answer;
      return { endpoint: name, outcome: holder ? "held" : "free", ...seen };
    }),
  };
}

/** See {@link Redlock.forceRelease}. */
export async function forceRelease(settings: Settings, resource: string): Promise<boolean> {
  const key = keyOf(settings.prefix, "lock", resource);
  const round = ask(settings, settings.timeout, async (call): Promise<Answer & { freed: boolean }> => {
    const reply = await send(call, ["DEL", key]);
    if (!Number.isInteger(reply)) throw new Error("unexpected reply to a deletion");
    return { outcome: "granted", freed: reply === 1 };
  });
  await round.done;
  if ((await round.verdict) !== "granted") throw new QuorumError("free", [resource], round.votes());
  return round.answers.some((answer) => answer?.outcome === "granted" && answer.freed);
}
