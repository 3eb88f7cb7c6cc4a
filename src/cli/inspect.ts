import { clientHelp, clientOptions, openClient } from "./client.ts";
import {
  type Command,
  defineCommand,
  type ExitCode,
  exitCode,
  exitCodes,
  onlyArgument,
  UsageError,
} from "./command.ts";
import { inspectLatch } from "./inspect-latch.ts";
import { kindOf } from "./kinds.ts";
import { type Finding, findingLines, look, scopeHelp, scopeOptions, targetOf } from "./target.ts";
import { jsonLine } from "./text.ts";

/** `redlock-edge inspect`: one look at a lock or a key. */
export const inspectCommand: Command = defineCommand({
  name: "inspect",
  summary: "shows who holds a lock, or what is stored for an idempotency key, and why",
  help: `Usage: redlock-edge inspect <resource> [options]
       redlock-edge inspect --key <key> [--scope <name>]… [options]
       redlock-edge inspect <name> --kind count-down-latch --count <n> [options]

Reads the state at every endpoint and changes nothing: votes, holder, remaining time, fence, and why it is held, free or
undecided. With --key: the record of idempotent runs, its age, and the number of attempts.

  npx redlock-edge inspect invoice:42
  npx redlock-edge inspect --key evt_1 --scope stripe --json

  --key <key>          a key of idempotent runs instead of a resource
${scopeHelp}  --kind count-down-latch --count <n>   a latch instead, which n arrivals open

${clientHelp}
${exitCodes}`,
  options: {
    ...clientOptions,
    ...scopeOptions,
    key: { type: "string" },
    kind: { type: "string" },
    count: { type: "string" },
  },
  async run({ values, positionals }, environment) {
    const { kind, count, json } = values;
    if (kind === undefined && count !== undefined) throw new UsageError("--count needs --kind");
    const client = await openClient(values, environment);
    if (kind !== undefined) {
      const name = onlyArgument(positionals, "the name of a latch");
      return inspectLatch(client, { name, kind: kindOf(kind), count, json }, environment);
    }
    const finding = await look(client, await targetOf(values, positionals, client.variables));
    const { report, cost } = finding;
    if (json) environment.out(jsonLine({ command: "inspect", ...report, cost }));
    else for (const line of findingLines(finding)) environment.out(line);
    return codeOf(finding);
  },
});

function codeOf({ report: { state } }: Finding): ExitCode {
  if (state === "undecided") return exitCode.failed;
  return state === "free" || state === "none" ? exitCode.nothing : exitCode.done;
}
