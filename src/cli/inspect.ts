import { Idempotency, inspectKey } from "../idempotency/index.ts";
import { type Endpoint, inspect, QuorumError } from "../index.ts";
import { keyOf } from "../redis/keys.ts";
import { kindsOf } from "../sync/force-release.ts";
import { CountDownLatch } from "../sync/index.ts";
import { type Client, openClient } from "./access.ts";
import { type Environment, type ExitCode, exitCode, type Outcome, UsageError } from "./environment.ts";
import {
  costText,
  type Finding,
  type Found,
  findingLines,
  keyFinding,
  lockFinding,
  withSynchronizers,
} from "./finding.ts";
import type { Values } from "./options.ts";
import { type Target, targetOf } from "./target.ts";
import { layout } from "./text.ts";

/** Inspects a resource or a key. Too few answers are a finding as well. */
export async function look(client: Client, target: Target): Promise<Finding> {
  const { value, cost } = await client.run(() => findingOf(client, target));
  return { ...value, cost };
}

async function findingOf(client: Client, target: Target): Promise<Found> {
  const { redlock } = client;
  if ("key" in target) {
    const { key, options } = target;
    const found = await inspectKey(new Idempotency(redlock), key, options).catch(quorumError);
    return keyFinding(target, found);
  }
  const { resource } = target;
  const found = await inspect(redlock, resource).catch(quorumError);
  const finding = lockFinding(resource, found, Date.now());
  return finding.state === "free" ? withSynchronizers(finding, await usersOf(client, resource)) : finding;
}

/** By endpoint: the kinds of synchronizers that have keys of a name there; undefined: it did not answer. */
function usersOf(
  { endpoints, prefix, timeout }: Client,
  name: string,
): Promise<(readonly string[] | undefined)[]> {
  const kindsAt = async ({ send }: Endpoint) => {
    const asked = Object.entries(kindsOf).map(async ([kind, [part]]) => {
      const isThere = await send(["EXISTS", keyOf(prefix, part, name)], AbortSignal.timeout(timeout));
      return isThere === 1 ? kind : [];
    });
    return (await Promise.all(asked)).flat();
  };
  return Promise.all(endpoints.map((each) => kindsAt(each).catch(() => undefined)));
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
  const finding = await look(client, target);
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
