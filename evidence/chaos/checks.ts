import { explain, linearizableEach, partition } from "../linearizability/checker.ts";
import { fencedHistory, grantHistory } from "../linearizability/history.ts";
import { fencedRegisterModel, lockModel } from "../linearizability/models.ts";
import { accessRecords, exclusive, grantRecords, type Hold } from "./holds.ts";
import type { Loss } from "./nemesis.ts";
import type { Account } from "./records.ts";

/** The result of one check. */
export interface Check {
  readonly title: string;
  readonly holds: boolean;
  readonly found: string;
}

/** Two holds that contradict each other, in order of time. */
export type Breach = readonly [Hold, Hold];

/**
 * Holds of one resource whose validity overlaps. A server that loses its memory between the first one's request and
 * the second one's grant may have voted for both: such pairs are left out.
 */
export function overlaps(holds: readonly Hold[], losses: readonly Loss[]): Breach[] {
  const breaches: Breach[] = [];
  for (const group of partition(holds, ({ resource }) => resource).values()) {
    const spans = group
      .flatMap((hold) => {
        const span = exclusive(hold);
        return span ? [{ hold, ...span }] : [];
      })
      .sort((a, b) => a.from - b.from);
    let last = spans[0];
    for (const span of spans.slice(1)) {
      if (span.from < last!.to) breaches.push([last!.hold, span.hold]);
      if (span.to > last!.to) last = span;
    }
  }
  return unexplained(losses, breaches);
}

/**
 * Grants whose fence is not larger than that of an earlier grant. A grant is earlier if it returned before the other
 * was called. Grants with validity left exclude each other, so these are ordered by when they returned.
 */
export function disorderedFences(holds: readonly Hold[], losses: readonly Loss[]): Breach[] {
  const fenced = holds.filter(({ fence, granted }) => fence !== undefined && granted !== undefined);
  const breaches: Breach[] = [];
  for (const group of partition(fenced, ({ resource }) => resource).values()) {
    breaches.push(...disorder(group, ({ invoked }) => invoked));
    breaches.push(
      ...disorder(
        group.filter((hold) => exclusive(hold)),
        ({ granted }) => granted!,
      ),
    );
  }
  return unexplained(losses, breaches);
}

function disorder(group: readonly Hold[], begin: (hold: Hold) => number): Breach[] {
  const ended = [...group].sort((a, b) => a.granted! - b.granted!);
  const breaches: Breach[] = [];
  let highest: Hold | undefined;
  let next = 0;
  for (const hold of [...group].sort((a, b) => begin(a) - begin(b))) {
    for (; ended[next] && ended[next]!.granted! < begin(hold); next++) {
      if (!highest || ended[next]!.fence! > highest.fence!) highest = ended[next];
    }
    if (highest && highest.fence! >= hold.fence!) breaches.push([highest, hold]);
  }
  return breaches;
}

/** What contradicts the promises of idempotent runs, without what a loss of memory explains. */
export interface EventFaults {
  /** Two runs of an event whose results were both stored; and answers that differ from the result stored before the call. */
  readonly stored: readonly Breach[];
  readonly answers: readonly Breach[];
  /** Stored runs that are not their event's result at the end. */
  readonly forgotten: readonly Hold[];
  /** Stored runs that left no effect, or more than one. */
  readonly withoutEffect: readonly Hold[];
}

/** @param last by event: its stored result at the end of the run, or null where there is none */
export function eventFaults(
  holds: readonly Hold[],
  effects: ReadonlyMap<string, readonly string[]>,
  last: ReadonlyMap<string, string | null>,
  losses: readonly Loss[],
): EventFaults {
  const stored: Breach[] = [];
  const answers: Breach[] = [];
  const forgotten: Hold[] = [];
  const withoutEffect: Hold[] = [];
  for (const group of partition(holds, ({ resource }) => resource).values()) {
    const event = group[0]!.resource;
    const results = group
      .filter((hold) => storedAt(hold) < Infinity)
      .sort((a, b) => storedAt(a) - storedAt(b));
    const [first, ...others] = results;
    stored.push(...others.map((other): Breach => [first!, other]));
    for (const run of results) {
      const times = effects.get(event)?.filter((each) => each === run.id).length;
      if (times !== 1) withoutEffect.push(run);
    }
    if (!first) continue;
    for (const hold of group) {
      const late = hold.invoked > storedAt(first);
      const differs = hold.answered !== undefined && hold.answered.value !== first.id;
      if (late && (differs || hold.granted !== undefined)) answers.push([first, hold]);
    }
    if (last.get(event) !== first.id) forgotten.push(first);
  }
  return {
    stored: unexplained(losses, stored),
    answers: unexplained(losses, answers),
    forgotten: forgotten.filter((run) => !losses.some(({ to }) => to >= run.invoked)),
    withoutEffect,
  };
}

/** Since when a quorum certainly has the run's result; Infinity: not known. */
function storedAt({ ran }: Hold): number {
  return ran.find(({ how }) => how === "executed")?.at ?? Infinity;
}

/**
 * Checks that the history of every lock, up to the first loss of memory, and of every account that is opened with a
 * fence is linearizable. An undecided search does not fail the check, but is reported.
 */
export function checkHistories(
  holds: readonly Hold[],
  accounts: readonly Account[],
  losses: readonly Loss[],
): Check[] {
  const firstLoss = Math.min(...losses.map(({ from }) => from));
  const kept = holds.filter(({ invoked, granted = invoked }) => granted < firstLoss);
  const grants = grantRecords(kept).map((record) =>
    // The result of a release after a loss proves nothing about the time before.
    (record.releaseReturned ?? 0) < firstLoss ? record : { ...record, released: undefined },
  );
  const opened = new Set(accounts.filter(({ guard }) => guard === "opened").map(({ name }) => name));
  const fenced = fencedHistory(
    grants.filter(({ resource }) => opened.has(resource)),
    accessRecords(holds.filter(({ resource }) => opened.has(resource))),
  );
  const locks = linearizableEach(lockModel, grantHistory(grants, { duplicates: true }));
  const registers = linearizableEach(fencedRegisterModel(0), fenced);
  return [
    { title: "lock histories are linearizable", ...checked(locks) },
    { title: "fenced histories are linearizable", ...checked(registers) },
  ];
}

function checked({ outcome, results }: ReturnType<typeof linearizableEach>): Omit<Check, "title"> {
  const lines = [...results].map(([resource, result]) =>
    result.outcome === "no" ? `${resource} ${explain(result)}` : result.outcome,
  );
  return { holds: outcome !== "no", found: outcome === "yes" ? `yes, ${results.size}` : lines.join(", ") };
}

/** Breaches that no endpoint's loss of memory can explain. */
function unexplained(losses: readonly Loss[], breaches: readonly Breach[]): Breach[] {
  return breaches.filter(([first, second]) => {
    const until = second.granted ?? second.answered?.at ?? Infinity;
    return !losses.some(({ from, to }) => to >= first.invoked && from <= until);
  });
}
