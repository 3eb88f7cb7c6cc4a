import { clientHelp, clientOptions, openClient } from "./client.ts";
import {
  type Command,
  defineCommand,
  exitCode,
  exitCodes,
  integer,
  StoppedError,
  UsageError,
} from "./command.ts";
import { type Finding, look, scopeHelp, scopeOptions, targetOf } from "./target.ts";
import { duration, jsonLine, printable } from "./text.ts";

/** `redlock-edge watch`: a line for each change of a lock or a key. */
export const watchCommand: Command = defineCommand({
  name: "watch",
  summary: "looks again and again, and prints a line for each change",
  help: `Usage: redlock-edge watch <resource> [options]
       redlock-edge watch --key <key> [--scope <name>]… [options]

Inspects again and again until Ctrl-C, and prints a line whenever the state, the holder, the fence or the answer of an
endpoint has changed, or the lock or lease was extended. It sees a change at most one interval late, and none that was
undone in between. Each look costs one request per endpoint.

  npx redlock-edge watch invoice:42 --interval 500

  --interval <ms>      pause between two looks, at least 100 (1000)
  --key <key>          a key of idempotent runs instead of a resource
${scopeHelp}
${clientHelp}
${exitCodes}`,
  options: { ...clientOptions, ...scopeOptions, key: { type: "string" }, interval: { type: "string" } },
  async run({ values, positionals }, environment) {
    const { interval = "1000", json } = values;
    const pause = integer("--interval", interval);
    if (pause < 100) throw new UsageError("--interval is at least 100 ms");
    const client = await openClient(values, environment);
    const target = await targetOf(values, positionals, client.variables);
    const { stop, out } = environment;
    let last: Look | undefined;
    try {
      while (!stop.aborted) {
        const next: Look = { finding: await look(client, target), at: Date.now() };
        const change = changeBetween(last, next);
        if (change !== undefined) out(json ? jsonOf(next, change) : lineOf(next, change));
        last = next;
        await pauseOrStop(pause, stop);
      }
    } catch (error) {
      // It was asked to stop while it looked.
      if (!(error instanceof StoppedError)) throw error;
    }
    return exitCode.done;
  },
});

/** A finding, and when it was made, in ms since 1970. */
export interface Look {
  readonly finding: Finding;
  readonly at: number;
}

/** What has changed between two looks; undefined: nothing but the time that remains. */
export type Change = "first" | "changed" | "extended";

/** A ttl that ends later than this by so many ms was extended; clocks and delays alone account for less. */
const extension = 250;

/** Compares two looks. */
export function changeBetween(before: Look | undefined, now: Look): Change | undefined {
  if (!before) return "first";
  if (signature(before.finding) !== signature(now.finding)) return "changed";
  const [earlier, later] = [before, now].map(({ finding, at }) => at + finding.report.remaining);
  return later! - earlier! > extension && now.finding.report.remaining > 0 ? "extended" : undefined;
}

/** Everything that matters of a finding, without what changes all the time. */
function signature({ kind, report }: Finding): string {
  const votes =
    kind === "lock"
      ? report.votes.map(({ state, holder, fence, error }) => [state, holder, fence, error?.kind])
      : report.votes.map(({ state, attempts, error }) => [state, attempts, error?.kind]);
  const own = kind === "lock" ? [report.holder, report.fence] : [report.attempts, report.fingerprint];
  return JSON.stringify([report.state, own, votes]);
}

/** A look as a line for people. */
export function lineOf({ finding: { kind, report }, at }: Look, change: Change): string {
  const { state, remaining, why } = report;
  const name = kind === "lock" ? report.resource : report.key;
  const details =
    kind === "lock"
      ? [report.holder ? `holder ${report.holder}` : "", report.fence ? `fence ${report.fence}` : ""]
      : [report.attempts ? `attempts ${report.attempts}` : ""];
  const parts = [
    `${new Date(at).toISOString()}  ${name} is ${state === "none" ? "without a record" : state}`,
    change === "extended" ? "extended" : "",
    remaining > 0 ? `${duration(remaining)} left` : "",
    ...details,
    change === "extended" ? "" : why,
  ];
  return printable(parts.filter(Boolean).join("; "));
}

function jsonOf({ finding: { report, cost }, at }: Look, change: Change): string {
  return jsonLine({ command: "watch", at: new Date(at).toISOString(), change, ...report, cost });
}

function pauseOrStop(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      stop.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    if (stop.aborted) end();
    else stop.addEventListener("abort", end, { once: true });
  });
}
