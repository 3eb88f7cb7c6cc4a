import { clientHelp, clientOptions, clientWords, openClient } from "./client.ts";
import {
  type Command,
  defineCommand,
  type ExitCode,
  exitCode,
  exitCodes,
  integer,
  onlyArgument,
  UsageError,
} from "./command.ts";
import { type DeadState, deadLines, deadReport } from "./explain-dead.ts";
import { keyReport } from "./explain-key.ts";
import { inspectTarget, keyTarget, scopeHelp, scopeOptions, scopeWords } from "./target.ts";
import { jsonLine, shellWord } from "./text.ts";

/** `redlock-edge dead`: whether too many runs of a key did not end. */
export const deadCommand: Command = defineCommand({
  name: "dead",
  summary: "shows whether an idempotency key is dead (maxAttempts), and what to do",
  help: `Usage: redlock-edge dead <key> [--max-attempts <n>] [--scope <name>]… [options]

A key is dead when as many runs as \`maxAttempts\` began and neither completed nor failed: DeadKeyError. Redis has the
number of runs, but not your \`maxAttempts\`.

  npx redlock-edge dead evt_1 --scope stripe --max-attempts 5

  --max-attempts <n>   the \`maxAttempts\` of your program
${scopeHelp}
${clientHelp}
${exitCodes}`,
  options: { ...clientOptions, ...scopeOptions, "max-attempts": { type: "string" } },
  async run({ values, positionals }, environment) {
    const key = onlyArgument(positionals, "a key");
    const given = values["max-attempts"];
    const maxAttempts = given === undefined ? undefined : integer("--max-attempts", given);
    if (maxAttempts === 0) throw new UsageError("--max-attempts is at least 1");
    const client = await openClient(values, environment);
    const target = await keyTarget(key, values, client.variables);
    const { value, cost } = await client.run(() => inspectTarget(client, target));
    const report = deadReport(keyReport(key, value), maxAttempts);
    if (values.json) environment.out(jsonLine({ command: "dead", ...report, cost }));
    else {
      const forget = `npx redlock-edge forget ${shellWord(key)}${scopeWords(values)}${clientWords(values)}`;
      for (const line of deadLines(report, forget)) environment.out(line);
    }
    return codes[report.state];
  },
});

const codes: Readonly<Record<DeadState, ExitCode>> = {
  dead: exitCode.done,
  "last-attempt": exitCode.nothing,
  alive: exitCode.nothing,
  unknown: exitCode.failed,
};
