import { sleep, systemRuntime } from "../runtime.ts";
import { openClient } from "./access.ts";
import { type Environment, StoppedError } from "./environment.ts";
import { type Finding, headlineOf, quoted } from "./finding.ts";
import { look } from "./inspect.ts";
import type { Values } from "./options.ts";
import { targetOf } from "./target.ts";
import { duration, jsonLine, printable } from "./text.ts";

/** `redlock-edge watch`: a line for each change of a lock or a key. */
export async function watch(argument: string, values: Values, environment: Environment): Promise<undefined> {
  const client = await openClient(values, environment);
  const target = await targetOf(argument, values, client.variables);
  const { stop, out } = environment;
  let last: Look | undefined;
  try {
    while (!stop.aborted) {
      const next: Look = { finding: await look(client, target, environment), at: Date.now() };
      const change = changeBetween(last, next);
      if (change !== undefined) out(values.json ? jsonOf(next, change) : lineOf(next, change));
      last = next;
      await sleep(systemRuntime, values.interval, stop);
    }
  } catch (error) {
    // It was asked to stop while it looked.
    if (!(error instanceof StoppedError)) throw error;
  }
  return undefined;
}

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
  const [earlier, later] = [before, now].map(({ finding, at }) => at + finding.remaining);
  return later! - earlier! > extension && now.finding.remaining > 0 ? "extended" : undefined;
}

/** Fields that change all the time, and texts about them. */
const passing = new Set(["remaining", "age", "fenceAge", "why", "message"]);

/** Everything that matters of a finding. */
function signature(finding: Finding): string {
  return JSON.stringify(finding, (name, value) => (passing.has(name) ? undefined : value));
}

/** A look as a line for people. */
export function lineOf({ finding, at }: Look, change: Change): string {
  const { remaining, holder, note, fence, attempts, votes } = finding;
  const states = votes.map(({ endpoint, state, error }) => (error ? `${endpoint} ${error.message}` : state));
  const parts = [
    `${new Date(at).toISOString()}  ${headlineOf(finding)}`,
    change === "extended" && "extended",
    remaining > 0 && `${duration(remaining)} left`,
    holder && `holder ${holder}`,
    note && `note ${quoted(note)}`,
    fence && `fence ${fence}`,
    attempts && `attempts ${attempts}`,
    change !== "extended" && `votes ${states.join(", ")}`,
  ];
  return printable(parts.filter(Boolean).join("; "));
}

function jsonOf({ finding, at }: Look, change: Change): string {
  return jsonLine({ command: "watch", at: new Date(at).toISOString(), change, ...finding });
}
