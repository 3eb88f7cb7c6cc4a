import { Idempotency, inspectKey } from "../idempotency/index.ts";
import { inspect, QuorumError } from "../index.ts";
import { keyOf } from "../redis/keys.ts";
import { kindsOf } from "../sync/force-release.ts";
import { CountDownLatch } from "../sync/index.ts";
import { type Client, openClient } from "./access.ts";
import { type Environment, type ExitCode, exitCode, type Outcome, UsageError } from "./environment.ts";
import { costText, type Finding, findingLines, inUse, keyFinding, lockFinding } from "./finding.ts";
import type { Values } from "./options.ts";
import { type Target, targetOf } from "./target.ts";
import { layout } from "./text.ts";

/** Inspects a resource or a key. Too few answers are a finding as well. */
export async function look(client: Client, target: Target): Promise<Finding> {
  if ("resource" in target) {
    const { resource } = target;
    const { value, cost } = await client.run(() => inspect(client.redlock, resource).catch(quorumError));
    return lockFinding(resource, value, Date.now(), cost);
  }
  const { key, options } = target;
  const idempotency = new Idempotency(client.redlock);
  const { value, cost } = await client.run(() => inspectKey(idempotency, key, options).catch(quorumError));
  return keyFinding(target, value, cost);
}

function quorumError(error: unknown): QuorumError {
  if (error instanceof QuorumError) return error;
  throw error;
}

/** `redlock-edge inspect`: one look at a lock, a key or a latch. */
export async function inspectOnce(
  argument: string,
  values: Values,
  environment: Environment,
): Promise<Outcome> {
  const { kind, count } = values;
  if (kind === undefined && count !== undefined) throw new UsageError("--count needs --kind");
  const client = await openClient(values, environment);
  if (kind !== undefined) return inspectLatch(client, argument, values);
  const target = await targetOf(argument, values, client.variables);
  const found = await look(client, target);
  const finding = found.state === "free" ? await unlessInUse(found, client, values) : found;
  return {
    code: codes[finding.state] ?? exitCode.done,
    fields: finding,
    lines: (width) => findingLines(finding, width),
  };
}

const codes: Readonly<Partial<Record<Finding["state"], ExitCode>>> = {
  undecided: exitCode.failed,
  free: exitCode.nothing,
  none: exitCode.nothing,
};

/** A lock that is free, unless a synchronizer uses its name on a quorum. */
async function unlessInUse(finding: Finding, client: Client, { prefix, timeout }: Values): Promise<Finding> {
  const { resource = "", quorum, cost: before } = finding;
  const kinds = Object.entries(kindsOf);
  const { value: found, cost } = await client.run(() =>
    Promise.all(
      kinds.map(async ([, [part]]) => {
        const command = ["EXISTS", keyOf(prefix, part, resource)];
        const asked = client.endpoints.map(({ send }) => send(command, AbortSignal.timeout(timeout)));
        const replies = await Promise.allSettled(asked);
        return replies.filter((each) => each.status === "fulfilled" && each.value === 1).length;
      }),
    ),
  );
  const used = found.findIndex((count) => count >= quorum);
  const sum = { requests: before.requests + cost.requests, ms: before.ms + cost.ms };
  if (used < 0) return { ...finding, cost: sum };
  return { ...inUse(finding, kinds[used]![0], found[used]!), cost: sum };
}

/** The one synchronizer that can be inspected. */
async function inspectLatch(client: Client, name: string, { kind, count }: Values): Promise<Outcome> {
  if (kind !== "CountDownLatch") {
    throw new UsageError(`a ${kind} cannot be inspected, a CountDownLatch can; free --kind frees both`);
  }
  if (count === undefined) throw new UsageError("--count is missing: how many arrivals open the latch");
  const latch = new CountDownLatch(client.redlock, name, { count });
  const { value: state, cost } = await client.run(() => latch.inspect());
  const { open, arrived, remaining } = state;
  return {
    code: open ? exitCode.done : exitCode.nothing,
    fields: { resource: name, kind, ...state, cost },
    lines: (width) => [
      ...layout([[`${name} is ${open ? "open" : "closed"}`]], width),
      `  arrivals  ${arrived} of ${count}, ${remaining} missing`,
      `  cost      ${costText(cost)}`,
    ],
  };
}
