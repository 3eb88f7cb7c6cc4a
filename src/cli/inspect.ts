import { Idempotency, inspectKey } from "../idempotency/index.ts";
import { QuorumError } from "../index.ts";
import { inspect } from "../inspect/index.ts";
import { settingsOf } from "../lock/client.ts";
import { runRound } from "../quorum/round.ts";
import { keyOf } from "../redis/keys.ts";
import { kindsOf } from "../sync/force-release.ts";
import { type Client, openClient } from "./access.ts";
import { type Environment, type ExitCode, exitCode, type Outcome, untilStopped } from "./environment.ts";
import { type Finding, findingLines, keyFinding, lockFinding, withSynchronizers } from "./finding.ts";
import type { Values } from "./options.ts";
import { type Target, targetOf } from "./target.ts";

/** Inspects a resource or a key. Too few answers are a finding as well. */
export function look(client: Client, target: Target, environment: Environment): Promise<Finding> {
  return untilStopped(environment, findingOf(client, target));
}

async function findingOf(client: Client, target: Target): Promise<Finding> {
  const { redlock } = client;
  if ("key" in target) {
    const { key, options } = target;
    const found = await inspectKey(new Idempotency(redlock), key, options).catch(quorumError);
    return keyFinding(key, found);
  }
  const { resource } = target;
  const found = await inspect(redlock, resource).catch(quorumError);
  const finding = lockFinding(resource, found, Date.now());
  return finding.state === "free" ? withSynchronizers(finding, await usersOf(client, resource)) : finding;
}

/** By endpoint: the kinds of synchronizers that have keys of a name there; undefined: it did not answer. */
async function usersOf({ redlock }: Client, name: string): Promise<(readonly string[] | undefined)[]> {
  const settings = settingsOf(redlock);
  const round = runRound(settings, async (call) => {
    const asked = Object.entries(kindsOf).map(async ([kind, [part]]) => {
      return (await call.send(["EXISTS", keyOf(settings.prefix, part, name)])) === 1 ? kind : [];
    });
    return { outcome: "granted", kinds: (await Promise.all(asked)).flat() } as const;
  });
  await round.done;
  return round.calls.map(({ answer }) => (answer?.outcome === "granted" ? answer.kinds : undefined));
}

function quorumError(error: unknown): QuorumError {
  if (error instanceof QuorumError) return error;
  throw error;
}

/** `redlock-edge inspect`: one look at a lock or a key. */
export async function inspectOnce(
  argument: string,
  values: Values,
  environment: Environment,
): Promise<Outcome> {
  const client = await openClient(values, environment);
  const target = await targetOf(argument, values, client.variables);
  const finding = await look(client, target, environment);
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
