import { contradictions, overlaps, unorderedFences } from "./checks.ts";
import type { Run } from "./main.ts";

/** In a run of at least so many seconds every kind of fault and outcome must occur. */
const longEnough = 30;

/** The result of one check. */
export interface Check {
  readonly title: string;
  readonly holds: boolean;
  readonly found: string;
}

/** Checks a run against the promises of the package, and counts what happened. */
export function evaluateRun(run: Run): {
  readonly text: string;
  readonly checks: readonly Check[];
  readonly passed: boolean;
} {
  const { holds, last, seconds, progress, failures } = run;
  const losses = run.faults.filter(({ kind }) => kind === "server killed, memory lost");
  const counts = countsOf(run);
  // An idle run proves nothing.
  const missing = Object.keys(counts).filter((name) => seconds >= longEnough && !counts[name]);
  const checks = [
    nothing("holds exclude each other", overlaps(holds, losses)),
    nothing("fences increase", unorderedFences(holds, losses)),
    nothing("an event has one result, which stands", contradictions(holds, last, losses)),
    nothing("afterwards everybody gets everything", [progress.stuck, ...failures].filter(Boolean)),
    nothing("everything has happened", missing),
  ];
  const results = checks.map(
    ({ title, holds: is, found }) => `  ${is ? "PASS" : "FAIL"}  ${title}: ${found}`,
  );
  const figures = Object.entries({ ...counts, "s until everybody was served": progress.seconds.toFixed(1) });
  const text = [...figures.map(([name, value]) => `  ${name}: ${value}`), "", ...results].join("\n");
  return { text, checks, passed: checks.every(({ holds: is }) => is) };
}

/** How often each thing happened that must happen in a run. */
function countsOf({ times, holds, last }: Run): Record<string, number> {
  const refusals = (code: string) => holds.filter(({ refused }) => refused === code).length;
  return {
    ...times,
    grants: holds.filter((hold) => hold.granted !== undefined).length,
    "locks held by others": refusals("LOCK_HELD"),
    "answers without a quorum": refusals("NO_QUORUM"),
    "answered events": last.size,
  };
}

/** A check that nothing was found; lists the first few findings. */
function nothing(title: string, found: readonly string[]): Check {
  const more = found.length > 5 ? [`and ${found.length - 5} more`] : [];
  const list = [...found.slice(0, 5), ...more].join("\n        ");
  return { title, holds: found.length === 0, found: list || "nothing else" };
}
