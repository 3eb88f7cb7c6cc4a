import { explain, linearizableEach } from "../linearizability/checker.ts";
import { fencedHistory, grantHistory } from "../linearizability/history.ts";
import { fencedRegisterModel, lockModel } from "../linearizability/models.ts";
import { accessRecords, exclusive, grantRecords, type Hold } from "./holds.ts";
import type { Balance } from "./ledger.ts";
import type { Loss } from "./nemesis.ts";
import type { Account } from "./records.ts";

/** One verdict. */
export interface Check {
  readonly title: string;
  readonly holds: boolean;
  readonly found: string;
}

/** Two holds that contradict each other, in order of time. */
export type Breach = readonly [Hold, Hold];

/** Breaches, apart by whether an endpoint's loss of memory can explain them. */
export interface Breaches {
  readonly unexplained: readonly Breach[];
  readonly explained: readonly Breach[];
}

/**
 * Who held a resource while another could rely on holding it. A server that loses its memory between the first one's
 * request and the second one's grant may have voted twice.
 */
export function overlaps(holds: readonly Hold[], losses: readonly Loss[]): Breaches {
  const breaches: Breach[] = [];
  for (const group of byResource(holds)) {
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
  return apart(losses, breaches);
}

/**
 * Grants whose fence is not larger than that of an earlier grant. Earlier is what was granted before the other was
 * asked for; of grants that were of use when they came, holding excludes each other, so their order is that of the
 * grants.
 */
export function disorderedFences(holds: readonly Hold[], losses: readonly Loss[]): Breaches {
  const fenced = holds.filter(({ fence, granted }) => fence !== undefined && granted !== undefined);
  const breaches: Breach[] = [];
  for (const group of byResource(fenced)) {
    breaches.push(...disorder(group, ({ invoked }) => invoked));
    breaches.push(
      ...disorder(
        group.filter((hold) => exclusive(hold)),
        ({ granted }) => granted!,
      ),
    );
  }
  return apart(losses, breaches);
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

/** What events came to. */
export interface EventSummary {
  readonly runs: number;
  readonly executed: number;
  readonly replayed: number;
  /** Runs that ended otherwise, by how. `died`: never, their process was killed. */
  readonly otherwise: Readonly<Record<string, number>>;
  readonly effects: number;
  /** Events with more than one effect. */
  readonly repeated: number;
  /** Two runs of an event whose results both were stored, and answers that are not the result stored before they were asked for. */
  readonly stored: Breaches;
  readonly answers: Breaches;
  /** Stored runs that are not what their event is answered with in the end; and those that a loss may explain. */
  readonly forgotten: readonly Hold[];
  readonly forgottenByLoss: number;
  /** Stored runs that left no effect, or more than one. */
  readonly withoutEffect: readonly Hold[];
}

/** `last` is what each event is answered in the end: the stored result, or null where there is none. */
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
  for (const group of byResource(holds)) {
    const event = group[0]!.resource;
    const results = group
      .filter((hold) => storedAt(hold) < Infinity)
      .sort((a, b) => storedAt(a) - storedAt(b));
    const [first, ...others] = results;
    stored.push(...others.map((other): Breach => [first!, other]));
    for (const run of results) {
      const left = effects.get(event)?.filter((each) => each === run.id).length;
      if (left !== 1) withoutEffect.push(run);
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
    stored: apart(losses, stored),
    answers: apart(losses, answers),
    forgotten: forgotten.filter(remembered),
    forgottenByLoss: forgotten.filter((run) => !remembered(run)).length,
    withoutEffect,
  };
}

/** When a quorum certainly had the run's result. */
function storedAt({ ran }: Hold): number {
  return ran.find(({ how }) => how === "executed")?.at ?? Infinity;
}

/** Updates that were acknowledged and are gone. */
export function lostUpdates({ acknowledged, final }: Balance): number {
  return acknowledged - final;
}

/**
 * Whether one order of the operations explains the history of every lock, up to the first loss of memory, and of
 * every account that is opened with a fence. An undecided search is no failure, but is told.
 */
export function checkHistories(
  holds: readonly Hold[],
  accounts: readonly Account[],
  losses: readonly Loss[],
): Check[] {
  const firstLoss = Math.min(...losses.map(({ from }) => from));
  const kept = holds.filter(({ invoked, granted = invoked }) => granted < firstLoss);
  const grants = grantRecords(kept).map((record) =>
    // What a release says after a loss proves nothing about what was before.
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
    { title: "lock histories are linearizable", ...told(locks) },
    { title: "fenced histories are linearizable", ...told(registers) },
  ];
}

function told({ verdict, results }: ReturnType<typeof linearizableEach>): Omit<Check, "title"> {
  const lines = [...results].map(([resource, result]) =>
    result.verdict === "no" ? `${resource} ${explain(result)}` : result.verdict,
  );
  return { holds: verdict !== "no", found: verdict === "yes" ? `yes, ${results.size}` : lines.join(", ") };
}

function byResource(holds: readonly Hold[]): Hold[][] {
  const groups = new Map<string, Hold[]>();
  for (const hold of holds) {
    const group = groups.get(hold.resource);
    if (group) group.push(hold);
    else groups.set(hold.resource, [hold]);
  }
  return [...groups.values()];
}

function apart(losses: readonly Loss[], breaches: readonly Breach[]): Breaches {
  const isExplained = ([first, second]: Breach): boolean => {
    const until = second.granted ?? second.answered?.at ?? Infinity;
    return losses.some(({ from, to }) => to >= first.invoked && from <= until);
  };
  return {
    explained: breaches.filter(isExplained),
    unexplained: breaches.filter((breach) => !isExplained(breach)),
  };
}
