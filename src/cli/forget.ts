import { forgetKey, Idempotency, InProgressError } from "../idempotency/index.ts";
import { clientHelp, clientOptions, openClient } from "./client.ts";
import { type Command, defineCommand, type ExitCode, exitCode, exitCodes, onlyArgument } from "./command.ts";
import { confirm, nothingDone } from "./confirm.ts";
import type { Cost } from "./cost.ts";
import { withAdvice } from "./explain-lock.ts";
import { type Finding, findingLines, keyTarget, look, scopeHelp, scopeOptions } from "./target.ts";
import { duration, jsonLine, printable } from "./text.ts";

/** `redlock-edge forget`: lets a key run again. */
export const forgetCommand: Command = defineCommand({
  name: "forget",
  summary: "removes what is stored for an idempotency key, so that it runs again; asks first",
  help: `Usage: redlock-edge forget <key> [--scope <name>]… [options]

Removes the result, the count of attempts, and any value that is not a record: the next call with this key runs the
handler, and its effect happens again. A run under way is not removed: wait until its lease has ended. All endpoints
must answer.

  npx redlock-edge forget evt_1 --webhook stripe --secret-env STRIPE_WEBHOOK_SECRET

${scopeHelp}  --yes                do not ask

${clientHelp}
${exitCodes}`,
  options: { ...clientOptions, ...scopeOptions, yes: { type: "boolean" } },
  async run({ values, positionals }, environment) {
    const { out, warn } = environment;
    const key = onlyArgument(positionals, "a key");
    const client = await openClient(values, environment);
    const target = await keyTarget(key, values, client.variables);
    const report = (forgotten: boolean, cost: Cost): ExitCode => {
      const text = forgotten
        ? `${key} is forgotten: it can run again`
        : `${key}: there was nothing to forget`;
      out(values.json ? jsonLine({ command: "forget", key, forgotten, cost }) : printable(text));
      return forgotten ? exitCode.done : exitCode.nothing;
    };
    if (!values.yes) {
      // Without a terminal nothing is sent.
      const finding = environment.ask ? await look(client, target) : undefined;
      // Without a question, and without a request: a run may have completed since.
      if (finding && isNowhere(finding)) return report(false, finding.cost);
      const lines = finding ? findingLines(finding) : [];
      const warning = values.flight
        ? "The next call with this key computes its value anew."
        : "The next call with this key runs the handler, and its effect happens again.";
      if (!(await confirm(environment, [...lines, warning], `Forget ${key}?`))) {
        warn(nothingDone);
        return exitCode.refused;
      }
    }
    const idempotency = new Idempotency(client.redlock);
    const { value: forgotten, cost } = await client
      .run(() => orInProgress(forgetKey(idempotency, key, target.options)))
      .catch((error: unknown) => {
        throw withAdvice(
          error,
          `${key} is not forgotten everywhere: every endpoint must answer, because the next run would find a copy that one of them keeps. Forget it again when all are back`,
        );
      });
    if (forgotten instanceof InProgressError) {
      const { retryAfter } = forgotten;
      const text = `${key}: a run is under way, or its process has died; try again in ${duration(retryAfter)}`;
      out(
        values.json
          ? jsonLine({ command: "forget", key, forgotten: false, retryAfter, cost })
          : printable(text),
      );
      return exitCode.refused;
    }
    return report(forgotten, cost);
  },
});

function isNowhere({ report }: Finding): boolean {
  return report.votes.every((vote) => vote.state === "none" && !("attempts" in vote && vote.attempts));
}

async function orInProgress(forgotten: Promise<boolean>): Promise<boolean | InProgressError> {
  try {
    return await forgotten;
  } catch (error) {
    if (error instanceof InProgressError) return error;
    throw error;
  }
}
