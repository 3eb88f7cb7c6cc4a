import type { Execution } from "./executions.ts";
import type { Run } from "./main.ts";

/** What happened to one lock in a span of machine time: faults, holds, and what each endpoint executed. */
export interface Span {
  readonly resource: string;
  readonly from: number;
  readonly to: number;
}

/** ms after which a request is no longer shown that was never answered. */
const longestWay = 3_000;

/** A line for each step, in order of time, in ms since the beginning of the span. */
export function trailOf(run: Run, { resource, from, to }: Span): string[] {
  const steps: [at: number, what: string][] = [];
  for (const { kind, target, from: begins, to: ends } of run.faults.spans) {
    const what = `${target} ${kind}`.trim();
    if (begins < to && ends > from) steps.push([begins, `fault ${what}`], [ends, `end of ${what}`]);
  }
  for (const hold of run.holds) {
    const { id, granted, refused } = hold;
    const end = hold.releasing ?? hold.until ?? granted ?? hold.invoked;
    if (hold.resource !== resource || hold.invoked > to || end < from) continue;
    steps.push([hold.invoked, `${id} acquires for ${hold.ttl} ms${refused ? `: ${refused}` : ""}`]);
    for (const { at, until } of hold.looks)
      steps.push([at, `${id} may rely on it until ${since(from, until)}`]);
    if (hold.releasing !== undefined) steps.push([hold.releasing, `${id} releases`]);
    if (hold.released) steps.push([hold.released.at, `${id} has released: ${hold.released.outcome}`]);
  }
  for (const execution of run.executions) {
    if (!execution.request.keys.some((key) => key.includes(`{${resource}}`))) continue;
    if (execution.from < to && Math.min(execution.to, execution.from + longestWay) > from) {
      steps.push([execution.from, describe(execution, from)]);
    }
  }
  steps.sort(([one], [other]) => one - other);
  return steps.map(([at, what]) => `${since(from, at).padStart(9)}  ${what}`);
}

function describe({ endpoint, request, to, reply }: Execution, from: number): string {
  const { operation, value, ttl } = request;
  const what = `${endpoint} ${operation} ${value.slice(0, 8)}${ttl ? ` for ${ttl} ms` : ""}`;
  if (reply === undefined) return `${what}: no answer`;
  return `${what}: ${JSON.stringify(reply).slice(0, 60)} by ${since(from, to)}`;
}

function since(from: number, at: number): string {
  return (at - from).toFixed(1);
}
