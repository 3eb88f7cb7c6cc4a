import { type Check, checkAccounts, checkEvents, checkHolds, withoutEffect } from "./checks.ts";
import type { Hold } from "./holds.ts";
import type { Run } from "./main.ts";
import { accounts, type Guard } from "./records.ts";

/** In a run of at least so many seconds every kind of fault and outcome must occur. */
const longEnough = 30;

/** Checks a run against every promise of the package, and counts what happened. */
export function evaluateRun(run: Run): {
  readonly text: string;
  readonly checks: readonly Check[];
  readonly passed: boolean;
} {
  const losses = run.faults.spans.filter(({ kind }) => kind === "server killed, memory lost");
  const names = new Set(accounts.map(({ name }) => name));
  const locks = run.holds.filter(({ resource }) => names.has(resource));
  const runs = run.holds.filter(({ resource }) => !names.has(resource));
  const counts = countsOf(run, locks);
  const checks = [
    checkHolds(run.holds, losses),
    checkValidity(run),
    checkUpdates(run),
    checkAccounts(locks, accounts),
    checkEvents(runs, run.last, losses),
    checkEffects(runs, run),
    checkProgress(run),
    ...(run.seconds >= longEnough ? [checkVariety(counts)] : []),
  ];
  const results = checks.map(({ title, holds, found }) => `  ${holds ? "PASS" : "FAIL"}  ${title}: ${found}`);
  const figures = Object.entries({ ...counts, ...lostCounts(run) });
  const text = [...figures.map(([name, value]) => `  ${name}: ${value}`), "", ...results].join("\n");
  return { text, checks, passed: checks.every(({ holds }) => holds) };
}

function checkValidity(run: Run): Check {
  const dishonest = run.holds.filter(({ excess }) => excess > 0);
  return {
    title: "remaining() never promises more than a ttl since the last renewal",
    ...nothingFound(dishonest.map((hold) => `${describe(hold)}, ${hold.excess} ms more`)),
  };
}

function checkUpdates(run: Run): Check {
  const lost = lostIn(run, "opened");
  return { title: "fenced accounts lose no update", holds: lost === 0, found: `${lost} lost` };
}

function checkEffects(runs: readonly Hold[], { effects }: Run): Check {
  const wrong = withoutEffect(runs, effects).map(describe);
  return { title: "a stored run has left its effect once", ...nothingFound(wrong) };
}

function checkProgress({ progress, failures }: Run): Check {
  const { stuck, seconds } = progress;
  return {
    title: "afterwards everybody gets everything",
    holds: stuck === "" && failures.length === 0,
    found: [stuck, ...failures].filter(Boolean).join("; ") || `in ${seconds.toFixed(1)} s`,
  };
}

/** How often each thing happened that must happen in a run. */
function countsOf(run: Run, locks: readonly Hold[]): Record<string, number> {
  const { times, hits } = run.faults;
  return {
    ...times,
    ...Object.fromEntries(Object.entries(hits).map(([kind, count]) => [`requests hit by "${kind}"`, count])),
    grants: locks.filter((hold) => hold.granted !== undefined).length,
    contentions: run.contended,
    "answers without a quorum": run.holds.filter(({ refused }) => refused === "NO_QUORUM").length,
    "refusals by the ledger": run.balances.reduce((sum, balance) => sum + balance.refused, 0),
    "answered events": run.last.size,
  };
}

/** An idle run proves nothing. */
function checkVariety(counts: Readonly<Record<string, number>>): Check {
  const missing = Object.keys(counts).filter((name) => !counts[name]);
  return { title: "everything has happened", ...nothingFound(missing) };
}

function lostCounts(run: Run): Record<string, number> {
  return {
    "lost updates, unfenced": lostIn(run, "none"),
    "lost updates, only `fence > last`": lostIn(run, "greater"),
    "lost updates, opened with the fence": lostIn(run, "opened"),
  };
}

function lostIn({ balances }: Run, guard: Guard): number {
  return balances
    .filter(({ account }) => account.guard === guard)
    .reduce((sum, balance) => sum + balance.acknowledged - balance.balance, 0);
}

/** A check that nothing was found; lists the first few findings. */
function nothingFound(found: readonly string[]): { holds: boolean; found: string } {
  const more = found.length > 5 ? [`and ${found.length - 5} more`] : [];
  return { holds: found.length === 0, found: [...found.slice(0, 5), ...more].join("\n        ") || "none" };
}

function describe({ id, resource, fence, invoked, granted: at, until, releasing, ran }: Hold): string {
  const times = [invoked, at, until, releasing].map((time) => time?.toFixed(1) ?? "-").join(" ");
  const how = ran.map((each) => `${each.how} ${each.at.toFixed(1)}`).join(", ");
  return `${resource} by ${id} (invoked, granted, until, releasing: ${times}${fence ? `; fence ${fence}` : ""}${how && `; ${how}`})`;
}
