import { explain, linearizableEach, partition } from "../linearizability/checker.ts";
import { fencedHistory, grantHistory } from "../linearizability/history.ts";
import { fencedRegisterModel, lockModel } from "../linearizability/models.ts";
import { accessRecords, exclusive, grantRecords, type Hold } from "./holds.ts";
import type { Balance } from "./ledger.ts";
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

/** Breaches, separated by whether an endpoint's loss of memory can explain them. */
export interface Breaches {
  readonly unexplained: readonly Breach[];
  readonly explained: readonly Breach[];
}

/**
 * Holds of one resource whose validity overlaps. A server that loses its memory between the first one's request and
 * the second one's grant may have voted for both.
 */
export function overlaps(holds: readonly Hold[], losses: readonly Loss[]): Breaches {
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
  return separate(losses, breaches);
}

/**
 * Grants whose fence is not larger than that of an earlier grant. A grant is earlier if it returned before the other
 * was called. Grants with validity left exclude each other, so these are ordered by when they returned.
 */
export function disorderedFences(holds: readonly Hold[], losses: readonly Loss[]): Breaches {
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
  return separate(losses, breaches);
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

/** The outcomes of all events. */
export interface EventSummary {
  readonly runs: number;
  readonly executed: number;
  readonly replayed: number;
  /** Runs that were not stored, by outcome. `died`: their process was killed. */
  readonly otherwise: Readonly<Record<string, number>>;
  readonly effects: number;
  /** Events with more than one effect. */
  readonly repeated: number;
  /** Two runs of an event whose results were both stored; and answers that differ from the result stored before the call. */
  readonly stored: Breaches;
  readonly answers: Breaches;
  /** Stored runs that are not their event's result at the end; and the number of those that a loss may explain. */
  readonly forgotten: readonly Hold[];
  readonly forgottenByLoss: number;
  /** Stored runs that left no effect, or more than one. */
  readonly withoutEffect: readonly Hold[];
}

/** @param last by event: its stored result at the end of the run, or null where there is none */
export function summarizeEvents(
  holds: readonly Hold[],
  effects: ReadonlyMap<string, readonly string[]>,
  last: ReadonlyMap<string, string | null>,
  losses: readonly Loss[],
): EventSummary {
  const stored: Breach[] = [];
  const answers: Breach[] = [];
  const forgotten: Hold[] = [];
  const withoutEffect: Hold[] = [];
  const otherwise: Record<string, number> = {};
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
    for (const run of group) {
      if (run.granted === undefined || storedAt(run) < Infinity) continue;
      const how = run.ran.at(-1)?.how ?? "died";
      otherwise[how] = (otherwise[how] ?? 0) + 1;
    }
    if (!first) continue;
    for (const hold of group) {
      const late = hold.invoked > storedAt(first);
      const differs = hold.answered !== undefined && hold.answered.value !== first.id;
      if (late && (differs || hold.granted !== undefined)) answers.push([first, hold]);
    }
    if (last.get(event) !== first.id) forgotten.push(first);
  }
  const counts = [...effects.values()].map(({ length }) => length);
  const remembered = (run: Hold): boolean => !losses.some(({ to }) => to >= run.invoked);
  const answered = holds.flatMap((hold) => hold.answered?.status ?? []);
  return {
    runs: holds.filter(({ granted }) => granted !== undefined).length,
    executed: answered.filter((status) => status === "executed").length,
    replayed: answered.filter((status) => status === "replayed").length,
    otherwise,
    effects: counts.reduce((sum, count) => sum + count, 0),
    repeated: counts.filter((count) => count > 1).length,
    stored: separate(losses, stored),
    answers: separate(losses, answers),
    forgotten: forgotten.filter(remembered),
    forgottenByLoss: forgotten.filter((run) => !remembered(run)).length,
    withoutEffect,
  };
}

/** Since when a quorum certainly has the run's result; Infinity: not known. */
function storedAt({ ran }: Hold): number {
  return ran.find(({ how }) => how === "executed")?.at ?? Infinity;
}

/** How many acknowledged updates are missing. */
export function lostUpdates({ acknowledged, final }: Balance): number {
  return acknowledged - final;
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

function separate(losses: readonly Loss[], breaches: readonly Breach[]): Breaches {
  const isExplained = ([first, second]: Breach): boolean => {
    const until = second.granted ?? second.answered?.at ?? Infinity;
    return losses.some(({ from, to }) => to >= first.invoked && from <= until);
  };
  return {
    explained: breaches.filter(isExplained),
    unexplained: breaches.filter((breach) => !isExplained(breach)),
  };
}
