import { forceRelease } from "../../index.ts";
import { forceRelease as freeSynchronizer, type SynchronizerKind } from "../../sync/index.ts";
import { type Client, clientHelp, clientOptions, openClient } from "./client.ts";
import {
  type Command,
  type CommandEnvironment,
  defineCommand,
  exitCode,
  exitCodes,
  onlyArgument,
} from "./command.ts";
import { confirm, nothingDone } from "./confirm.ts";
import { withAdvice } from "./explain-lock.ts";
import { kindNames, kindOf } from "./kinds.ts";
import { findingLines, look } from "./target.ts";
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

  --kind <kind>        ${kindNames.slice(0, 5).join(", ")},
                       ${kindNames.slice(5).join(", ")}
  --yes                do not ask

${clientHelp}
${exitCodes}`,
  options: { ...clientOptions, kind: { type: "string" }, yes: { type: "boolean" } },
  async run({ values, positionals }, environment) {
    const name = onlyArgument(positionals, "a resource");
    const kind = values.kind === undefined ? undefined : kindOf(values.kind);
    const client = await openClient(values, environment);
    const { redlock } = client;
    if (!values.yes && !(await isWanted(client, environment, { name, kind }))) {
      environment.warn(nothingDone);
      return exitCode.refused;
    }
    const { value: freed, cost } = await client
      .run(() => (kind === undefined ? forceRelease(redlock, name) : freeSynchronizer(redlock, kind, name)))
      .catch((error: unknown) => {
        throw withAdvice(
          error,
          `${name} is freed where an endpoint answered, but too few did. Free it again when the others are back`,
        );
      });
    const text = freed ? `${name} is freed` : `${name}: there was nothing to free`;
    const kindField = kind === undefined ? {} : { kind };
    environment.out(
      values.json
        ? jsonLine({ command: "free", resource: name, ...kindField, freed, cost })
        : printable(text),
    );
    return freed ? exitCode.done : exitCode.nothing;
  },
});

/** Shows what would be freed, and asks. */
async function isWanted(
  client: Client,
  environment: CommandEnvironment,
  { name, kind }: { readonly name: string; readonly kind: SynchronizerKind | undefined },
): Promise<boolean> {
  const question = `Free ${name}?`;
  if (kind !== undefined) {
    const lines = [
      `This ends all holds of ${kind} ${name}, and does not stop the holders: they rely on them until they extend or check them.`,
    ];
    return confirm(environment, lines, question);
  }
  // Before the look: without a terminal nothing is sent.
  if (!environment.ask) return confirm(environment, [], question);
  const finding = await look(client, { resource: name });
  const { remaining } = finding.report;
  const until = remaining > 0 ? `, ${duration(remaining)} at most` : "";
  return confirm(
    environment,
    [
      ...findingLines(finding),
      `This does not stop the holder: it relies on the lock until it extends or checks it${until}.`,
    ],
    question,
  );
}
