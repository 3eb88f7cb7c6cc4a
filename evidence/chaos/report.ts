import {
  type Breaches,
  type Check,
  checkHistories,
  disorderedFences,
  type EventSummary,
  lostUpdates,
  overlaps,
  summarizeEvents,
} from "./checks.ts";
import type { Hold } from "./holds.ts";
import type { Run } from "./main.ts";
import { faultKinds } from "./nemesis.ts";
import { accounts, type Guard } from "./records.ts";

/** In a run of at least so many seconds every kind of fault and outcome must occur. */
const longEnough = 30;

/** Checks a run against every promise of the package, and prints its figures. */
export function evaluateRun(run: Run): {
  readonly text: string;
  readonly checks: readonly Check[];
  readonly passed: boolean;
} {
  const losses = run.faults.spans.filter(({ kind }) => kind === "server killed, memory lost");
  const names = new Set(accounts.map(({ name }) => name));
  const locks = run.holds.filter(({ resource }) => names.has(resource));
  const runs = run.holds.filter(({ resource }) => !names.has(resource));
  const events = summarizeEvents(runs, run.effects, run.last, losses);
  const overlapping = overlaps(run.holds, losses);
  const disordered = disorderedFences(locks, losses);
  const checks = [
    ...checkLocks(run, overlapping, disordered),
    ...checkHistories(locks, accounts, losses),
    ...checkEvents(events),
    checkProgress(run),
    ...(run.seconds >= longEnough ? [checkVariety(run, locks)] : []),
  ];
  const results = checks.map(({ title, holds, found }) => `  ${holds ? "PASS" : "FAIL"}  ${title}: ${found}`);
  const text = [...figures(run, { locks, overlapping, disordered, events }), "", ...results].join("\n");
  return { text, checks, passed: checks.every(({ holds }) => holds) };
}

function checkLocks(run: Run, overlapping: Breaches, disordered: Breaches): Check[] {
  const lost = lostIn(run, "opened");
  const dishonest = run.holds.filter(({ excess }) => excess > 0);
  const repeated = run.balances.reduce((sum, balance) => sum + balance.repeated, 0);
  return [
    { title: "fenced accounts lose no update", holds: lost === 0, found: `${lost} lost` },
    {
      title: "two holds of a resource are never valid at the same time",
      ...nothingFound(
        overlapping.unexplained.map(([first, second]) => `${describe(first)} and ${describe(second)}`),
      ),
    },
    {
      title: "remaining() never promises more than a ttl since the last renewal",
      ...nothingFound(dishonest.map((hold) => `${describe(hold)}, ${hold.excess} ms more`)),
    },
    {
      title: "fences increase with every grant",
      ...nothingFound(
        disordered.unexplained.map(([first, second]) => `${describe(first)}, then ${describe(second)}`),
      ),
    },
    { title: "no fence comes to the ledger twice", holds: repeated === 0, found: `${repeated}` },
  ];
}

function checkEvents(events: EventSummary): Check[] {
  const { stored, answers, forgotten, withoutEffect } = events;
  const pair = ([first, second]: readonly [Hold, Hold]) => `${describe(first)}, then ${describe(second)}`;
  return [
    { title: "of an event one result is stored", ...nothingFound(stored.unexplained.map(pair)) },
    {
      title: "once it is stored, every answer is that result",
      ...nothingFound(answers.unexplained.map(pair)),
    },
    { title: "a stored result is kept", ...nothingFound(forgotten.map(describe)) },
    { title: "a stored run has left its effect once", ...nothingFound(withoutEffect.map(describe)) },
  ];
}

function checkProgress({ progress, failures }: Run): Check {
  const { stuck, seconds } = progress;
  return {
    title: "afterwards everybody gets everything",
    holds: stuck === "" && failures.length === 0,
    found: [stuck, ...failures].filter(Boolean).join("; ") || `in ${seconds.toFixed(1)} s`,
  };
}

/** An idle run proves nothing. */
function checkVariety(run: Run, locks: readonly Hold[]): Check {
  const { times, hits } = run.faults;
  const counts: Record<string, number> = {
    ...times,
    ...Object.fromEntries(Object.entries(hits).map(([kind, count]) => [`requests hit by "${kind}"`, count])),
    grants: granted(locks),
    contentions: run.contended,
    "answers without a quorum": refused(run.holds, "NO_QUORUM"),
    "refusals by the ledger": run.balances.reduce((sum, balance) => sum + balance.refused, 0),
    "answered events": run.last.size,
  };
  const missing = Object.keys(counts).filter((name) => !counts[name]);
  return { title: "everything has happened", ...nothingFound(missing) };
}

/** What was found in a run. */
interface Findings {
  readonly locks: readonly Hold[];
  readonly overlapping: Breaches;
  readonly disordered: Breaches;
  readonly events: EventSummary;
}

function figures(run: Run, { locks, overlapping, disordered, events }: Findings): string[] {
  const { options, faults, seconds } = run;
  const perSecond = (count: number) => `${count} (${(count / seconds).toFixed(1)} per second)`;
  const rows: [string, string | number][] = [
    ["seed", options.seed],
    ["seconds of chaos", seconds.toFixed(1)],
    [
      "endpoints, clients at a time, in all",
      `${options.endpoints}, ${options.clients}, ${run.clientsStarted}`,
    ],
    ["HTTP requests to endpoints", perSecond(run.requests)],
    ["operations on locks", perSecond(locks.length)],
    ["grants", perSecond(granted(locks))],
    ["rounds contended", run.contended],
    ["given up: held, no quorum", `${refused(locks, "LOCK_HELD")}, ${refused(locks, "NO_QUORUM")}`],
    ["releases: freed, gone, unknown", released(locks)],
    ["quorum down, seconds", (faults.quorumDown / 1000).toFixed(1)],
    ...faultKinds.map((kind): [string, string] => [
      kind,
      `${faults.times[kind]}${faults.hits[kind] === undefined ? "" : `, hit ${faults.hits[kind]} requests`}`,
    ]),
    ["lost updates, unfenced", lostOf(run, "none")],
    ["lost updates, only `fence > last`", lostOf(run, "greater")],
    ["lost updates, opened with the fence", lostOf(run, "opened")],
    ["refused by the ledger, too old a fence", run.balances.map(({ refused: count }) => count).join(", ")],
    ["overlapping holds after a loss of memory", overlapping.explained.length],
    ["fences out of order after a loss", disordered.explained.length],
    ["events, deliveries", `${run.events}, ${run.deliveries}`],
    ["answered executed, replayed", `${events.executed}, ${events.replayed}`],
    ["runs, effects, events with several", `${events.runs}, ${events.effects}, ${events.repeated}`],
    ["runs not stored at once", tally(events.otherwise)],
    [
      "events run or answered anew after a loss",
      events.stored.explained.length + events.answers.explained.length,
    ],
    ["stored results gone after a loss", events.forgottenByLoss],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`);
}

function lostIn({ balances }: Run, guard: Guard): number {
  return balances
    .filter(({ account }) => account.guard === guard)
    .reduce((sum, balance) => sum + lostUpdates(balance), 0);
}

function lostOf(run: Run, guard: Guard): string {
  const balances = run.balances.filter(({ account }) => account.guard === guard);
  return `${lostIn(run, guard)} of ${balances.reduce((sum, { acknowledged }) => sum + acknowledged, 0)}`;
}

function granted(holds: readonly Hold[]): number {
  return holds.filter((hold) => hold.granted !== undefined).length;
}

function refused(holds: readonly Hold[], code: string): number {
  return holds.filter((hold) => hold.refused === code).length;
}

function released(holds: readonly Hold[]): string {
  const outcomes = holds.flatMap((hold) => hold.released?.outcome ?? []);
  return (["freed", "gone", "unknown"] as const)
    .map((outcome) => outcomes.filter((each) => each === outcome).length)
    .join(", ");
}

function tally(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
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
