import { unlessAborted } from "../runtime/abort.ts";
import { sleep, systemRuntime } from "../runtime/runtime.ts";
import { type Call, clientOf } from "./access.ts";
import { type Finding, factsOf, headlineOf, stateText } from "./finding.ts";
import { look } from "./inspect.ts";
import { targetOf } from "./target.ts";
import { jsonLine, layout } from "./text.ts";

/** `redlock-edge watch`: a line for each change of a lock or a key. */
export async function watch(call: Call): Promise<undefined> {
  const { values, environment } = call;
  const { stop, out, width } = environment;
  const redlock = clientOf(call);
  const target = await unlessAborted(targetOf(call, redlock), stop);
  let last: Look | undefined;
  while (target && !stop.aborted) {
    const finding = await unlessAborted(look(redlock, target), stop);
    if (!finding) break;
    const next: Look = { finding, at: Date.now() };
    const change = changeBetween(last, next);
    const json = { command: "watch", at: new Date(next.at).toISOString(), change, ...finding };
    const lines = values.json ? [jsonLine(json)] : linesOf(next, change, width);
    if (change !== undefined) for (const line of lines) out(line);
    last = next;
    await sleep(systemRuntime, values.interval, stop);
  }
  return undefined;
}

/** A finding, and when it was made, in ms since 1970. */
export interface Look {
  readonly finding: Finding;
  readonly at: number;
}

/** The change between two looks. Undefined: nothing but the time that remains. */
export type Change = "first" | "changed" | "extended" | undefined;

/** A ttl that ends later than this by so many ms was extended. Clocks and delays alone account for less. */
const extension = 250;

/** Compares two looks. */
export function changeBetween(before: Look | undefined, now: Look): Change {
  if (!before) return "first";
  if (signature(before.finding) !== signature(now.finding)) return "changed";
  const [earlier, later] = [before, now].map(({ finding, at }) => at + (finding.remaining ?? 0));
  return later! - earlier! > extension && now.finding.remaining ? "extended" : undefined;
}

/** Fields that change all the time, and texts about them. */
const passing = new Set(["remaining", "age", "fenceAge", "why", "message"]);

/** Everything that matters of a finding. */
function signature(finding: Finding): string {
  return JSON.stringify(finding, (name, value) => (passing.has(name) ? undefined : value));
}

/** A look for people: a line, or several of a narrow terminal. */
export function linesOf({ finding, at }: Look, change: Change, width: number): string[] {
  const { waiting, votes } = finding;
  const states = votes.map(({ endpoint, state, error }) =>
    error ? `${endpoint} ${error.message}` : stateText(state, finding),
  );
  const parts = [
    headlineOf(finding),
    change === "extended" && "extended",
    ...factsOf(finding).map(([label, fact]) => `${label} ${fact}`),
    waiting !== undefined && `waiting ${waiting}`,
    change !== "extended" && `votes ${states.join(", ")}`,
  ];
  return layout([[new Date(at).toISOString(), parts.filter(Boolean).join("; ")]], width);
}
