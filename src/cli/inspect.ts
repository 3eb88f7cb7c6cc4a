import { Idempotency, inspectKey } from "../idempotency/index.ts";
import { QuorumError, type Redlock } from "../index.ts";
import { inspect } from "../inspect/index.ts";
import { settingsOf } from "../lock/client.ts";
import { runRound } from "../quorum/round.ts";
import { keyOf } from "../redis/keys.ts";
import { kindsOf } from "../sync/force-release.ts";
import { Mailbox } from "../sync/index.ts";
import { type Call, clientOf, quorumError } from "./access.ts";
import { exitCode, type Outcome } from "./environment.ts";
import {
  type Finding,
  findingText,
  keyFinding,
  lockFinding,
  withMailbox,
  withSynchronizers,
} from "./finding.ts";
import { type Target, targetOf } from "./target.ts";

/** Inspects a resource or a key. Too few answers are a finding as well. */
export async function look(redlock: Redlock, target: Target): Promise<Finding> {
  if ("key" in target) {
    const { key, options, elsewhere } = target;
    const inspected = await inspectKey(new Idempotency(redlock), key, options).catch(quorumError);
    return keyFinding(key, inspected, elsewhere);
  }
  const { resource } = target;
  const finding = lockFinding(resource, await inspect(redlock, resource).catch(quorumError), Date.now());
  if (finding.state !== "free") return finding;
  const used = withSynchronizers(finding, await usersOf(redlock, resource));
  if (!used.kinds?.includes("Mailbox")) return used;
  const state = await new Mailbox(redlock, resource).inspect().catch(quorumError);
  return state instanceof QuorumError ? used : withMailbox(used, state);
}

/** By endpoint: the kinds of synchronizers that have keys of a name there. Undefined: it did not answer. */
async function usersOf(redlock: Redlock, name: string): Promise<(readonly string[] | undefined)[]> {
  const settings = settingsOf(redlock);
  const round = runRound(settings, async (call) => {
    const asked = Object.entries(kindsOf).map(async ([kind, { shows }]) => {
      const keys = shows.map((part) => keyOf(settings.prefix, part, name));
      return Number(await call.send(["EXISTS", ...keys])) > 0 ? kind : [];
    });
    return { outcome: "granted", kinds: (await Promise.all(asked)).flat() } as const;
  });
  await round.done;
  return round.calls.map(({ answer }) => (answer?.outcome === "granted" ? answer.kinds : undefined));
}

/** `redlock-edge inspect`: one look at a lock or a key. */
export async function inspectOnce(call: Call): Promise<Outcome> {
  const redlock = clientOf(call);
  const finding = await look(redlock, await targetOf(call));
  const isNothing = finding.state === "free" || finding.state === "none";
  const known = isNothing ? exitCode.nothing : exitCode.done;
  return {
    code: finding.state === "undecided" ? exitCode.failed : known,
    fields: finding,
    text: findingText(finding),
  };
}
