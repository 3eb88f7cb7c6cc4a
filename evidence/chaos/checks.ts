import type { Fault } from "./nemesis.ts";
import type { ClientRecord, Hold } from "./records.ts";

type Granted = Hold & Required<Pick<Hold, "granted" | "until">>;

const isGranted = (hold: Hold): hold is Granted => hold.granted !== undefined;

/** The holds that the records of clients describe. */
export function holdsOf(records: readonly ClientRecord[]): Hold[] {
  const holds = new Map<string, ClientRecord>();
  for (const record of records) {
    const before = holds.get(record.id);
    // A process that was stopped while it read its validity has read too little.
    const until = Math.max(before?.until ?? 0, record.until ?? 0);
    holds.set(record.id, { ...before, ...record, ...(until > 0 && { until }) });
  }
  return [...holds.values()] as Hold[];
}

/** What an endpoint has forgotten explains what contradicts before its end. */
function isExplained(earlier: Hold, later: Granted, losses: readonly Fault[]): boolean {
  return losses.some(({ from, to }) => from <= later.granted && to >= earlier.called);
}

/** Pairs of holds of one resource, in the order of their grants, that no loss of memory explains. */
function* pairs(holds: readonly Hold[], losses: readonly Fault[]): Generator<[Granted, Granted]> {
  const inOrder = holds.filter(isGranted).sort((one, other) => one.granted - other.granted);
  const before = new Map<string, Granted[]>();
  for (const later of inOrder) {
    const others = before.get(later.resource) ?? [];
    for (const earlier of others) if (!isExplained(earlier, later, losses)) yield [earlier, later];
    before.set(later.resource, [...others, later]);
  }
}

/** Pairs of holds of which both were relied on at once. */
export function overlaps(holds: readonly Hold[], losses: readonly Fault[]): string[] {
  return [...pairs(holds, losses)]
    .filter(([earlier, later]) => later.granted < Math.min(earlier.until, earlier.ended ?? Infinity))
    .map(([earlier, later]) => `${described(later)} while ${described(earlier)}`);
}

/** Pairs of holds with the same fence, or of which the later one has the smaller fence. */
export function unorderedFences(holds: readonly Hold[], losses: readonly Fault[]): string[] {
  return [
    ...pairs(
      holds.filter(({ fence }) => fence !== undefined),
      losses,
    ),
  ]
    .filter(([one, other]) => {
      const isAfter = other.called > one.granted;
      return one.fence === other.fence || (isAfter && one.fence! > other.fence!);
    })
    .map(([earlier, later]) => `${described(later)} after ${described(earlier)}`);
}

/**
 * Events with two results, or with a handler that began when there was one. Events during which an endpoint lost its memory are
 * left out.
 *
 * @param last by event: its stored result at the end of the run, or null where there is none
 */
export function contradictions(
  holds: readonly Hold[],
  last: ReadonlyMap<string, string | null>,
  losses: readonly Fault[],
): string[] {
  return [...last].flatMap(([event, result]) => {
    const runs = holds.filter(({ resource }) => resource === event);
    const began = Math.min(...runs.map(({ called }) => called));
    if (losses.some(({ to }) => to >= began)) return [];
    const stored = Math.min(...runs.map(({ answered }) => answered?.at ?? Infinity));
    const other = runs.filter(({ answered }) => answered && answered.value !== result);
    const again = runs.filter(({ called }) => called > stored).filter(isGranted);
    return [
      ...other.map((run) => `${described(run)}: ${run.answered!.value}, and ${result} is stored`),
      ...again.map((run) => `${described(run)} began after ${stored.toFixed(1)}`),
    ];
  });
}

function described({ id, resource, called, granted, until, ended, fence }: Hold): string {
  const times = [called, granted, until, ended].map((time) => time?.toFixed(1) ?? "-").join(" ");
  return `${resource} by ${id} (called, granted, until, ended: ${times}${fence ? `; fence ${fence}` : ""})`;
}
