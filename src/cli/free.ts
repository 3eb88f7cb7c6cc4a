import { forceRelease } from "../index.ts";
import { forceRelease as freeSynchronizer, type SynchronizerKind } from "../sync/index.ts";
import { type Client, clientHelp, clientOptions, openClient } from "./client.ts";
import {
  type Command,
  type CommandEnvironment,
  defineCommand,
  type ExitCode,
  exitCode,
  exitCodes,
  onlyArgument,
} from "./command.ts";
import { confirm, nothingDone } from "./confirm.ts";
import type { Cost } from "./cost.ts";
import { withAdvice } from "./explain-lock.ts";
import { kindOf, kindWords } from "./kinds.ts";
import { type Finding, findingLines, look } from "./target.ts";
import { duration, jsonLine, printable } from "./text.ts";

/** `redlock-edge free`: ends a hold, no matter whose it is. */
export const freeCommand: Command = defineCommand({
  name: "free",
  summary: "frees a lock, no matter who holds it; asks first",
  help: `Usage: redlock-edge free <resource> [options]
       redlock-edge free <name> --kind <kind> [options]

Frees a lock, or with --kind a synchronizer, no matter who holds it. Its holder is not stopped: it learns of it at its
next extension or check only, and relies on its lock until then. So stop the holder first; only a fence protects what it
still writes.

  npx redlock-edge free invoice:42
  npx redlock-edge free partner-api --kind semaphore --yes

  --kind <kind>        ${kindWords.slice(0, 5).join(", ")},
                       ${kindWords.slice(5).join(", ")}
  --yes                do not ask

${clientHelp}
${exitCodes}`,
  options: { ...clientOptions, kind: { type: "string" }, yes: { type: "boolean" } },
  async run({ values, positionals }, environment) {
    const name = onlyArgument(positionals, "a resource");
    const kind = values.kind === undefined ? undefined : kindOf(values.kind);
    const client = await openClient(values, environment);
    const { redlock } = client;
    const kindField = kind === undefined ? {} : { kind };
    const report = (freed: boolean, cost: Cost): ExitCode => {
      const text = freed ? `${name} is freed` : `${name}: there was nothing to free`;
      const fields = { command: "free", resource: name, ...kindField, freed, cost };
      environment.out(values.json ? jsonLine(fields) : printable(text));
      return freed ? exitCode.done : exitCode.nothing;
    };
    if (!values.yes) {
      const finding = await lookBefore(client, environment, { name, kind });
      // Without a question, and without a request: somebody may have acquired it since.
      if (finding && isFreeEverywhere(finding)) return report(false, finding.cost);
      if (!(await confirm(environment, warnings(finding, { name, kind }), `Free ${name}?`))) {
        environment.warn(nothingDone);
        return exitCode.refused;
      }
    }
    const { value: freed, cost } = await client
      .run(() => (kind === undefined ? forceRelease(redlock, name) : freeSynchronizer(redlock, kind, name)))
      .catch((error: unknown) => {
        throw withAdvice(
          error,
          `${name} is freed where an endpoint answered, but too few did. Free it again when the others are back`,
        );
      });
    return report(freed, cost);
  },
});

/** What is freed. */
interface Target {
  readonly name: string;
  readonly kind: SynchronizerKind | undefined;
}

/** Inspects a lock before the question; undefined for a synchronizer, and where there is nobody to ask. */
async function lookBefore(
  client: Client,
  { ask }: CommandEnvironment,
  { name, kind }: Target,
): Promise<Finding | undefined> {
  return ask && kind === undefined ? look(client, { resource: name }) : undefined;
}

function isFreeEverywhere({ report }: Finding): boolean {
  return report.votes.every(({ state }) => state === "free");
}

/** What there is to know before one decides. */
function warnings(finding: Finding | undefined, { name, kind }: Target): string[] {
  if (kind !== undefined) {
    return [
      `This ends all holds of ${kind} ${name}.`,
      "It does not stop the holders: they rely on what they hold until they extend or check it.",
    ];
  }
  if (!finding) return [];
  const { remaining, state } = finding.report;
  if (state === "free") {
    return [
      ...findingLines(finding),
      "Nobody holds it: what some endpoints have is of an acquire that is under way, or that has left it behind.",
    ];
  }
  const until = remaining > 0 ? `, ${duration(remaining)} at most` : "";
  return [
    ...findingLines(finding),
    `This does not stop the holder: it relies on the lock until it extends or checks it${until}.`,
  ];
}
