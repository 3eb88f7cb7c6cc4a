import { explain, linearizableEach, type Operation, partition } from "../linearizability/checker.ts";
import { fencedHistory, grantHistory } from "../linearizability/history.ts";
import { fencedRegisterModel, lockModel, type ResultInput, resultModel } from "../linearizability/models.ts";
import { accessRecords, grantRecords, type Hold } from "./holds.ts";
import type { Loss } from "./nemesis.ts";
import type { Account } from "./records.ts";

/** The result of one check. */
export interface Check {
  readonly title: string;
  readonly holds: boolean;
  readonly found: string;
}

/**
 * Checks that what clients saw between two losses of memory has a legal order: one holder at a time, for as long as its
 * `remaining()` promised, and fences that increase. Runs of events hold their events.
 */
export function checkHolds(holds: readonly Hold[], losses: readonly Loss[]): Check {
  const bounds = [...losses].sort((one, other) => one.from - other.from);
  const all = [...bounds, { from: Infinity, to: Infinity }].map(({ from: until }, index) => {
    const since = bounds[index - 1]?.to ?? -Infinity;
    const within = holds.filter(({ invoked, granted = invoked }) => invoked > since && granted < until);
    const records = grantRecords(within).map((record) =>
      // The result of a release after a loss proves nothing about the time before.
      (record.releaseReturned ?? 0) < until ? record : { ...record, released: undefined },
    );
    return linearizableEach(lockModel, grantHistory(records, { duplicates: true }));
  });
  return checked("holds exclude each other, and fences increase", all);
}

/** Checks that accounts which are opened with a fence accepted what they had to. */
export function checkAccounts(holds: readonly Hold[], accounts: readonly Account[]): Check {
  const opened = new Set(accounts.filter(({ guard }) => guard === "opened").map(({ name }) => name));
  const history = fencedHistory(accessRecords(holds.filter(({ resource }) => opened.has(resource))));
  const all = [linearizableEach(fencedRegisterModel(0), history)];
  return checked("accounts accept the largest fence", all);
}

/**
 * Checks that of each event one result is stored, no handler begins after that, and every answer is that result, at the end
 * of the run, too. Events during which an endpoint lost its memory are left out.
 *
 * @param last by event: its stored result at the end of the run, or null where there is none
 */
export function checkEvents(
  holds: readonly Hold[],
  last: ReadonlyMap<string, string | null>,
  losses: readonly Loss[],
): Check {
  const histories = new Map<string, Operation<ResultInput, true>[]>();
  for (const [event, runs] of partition(holds, ({ resource }) => resource)) {
    const began = Math.min(...runs.map(({ invoked }) => invoked));
    const result = last.get(event);
    if (result === undefined || losses.some(({ to }) => to >= began)) continue;
    const atEnd = { input: { kind: "read", result: result ?? "" }, invoked: 1e15, returned: 1e15 } as const;
    histories.set(event, [...runs.flatMap(operationsOf), { process: "the end", output: true, ...atEnd }]);
  }
  return checked("an event has one result, which stands", [linearizableEach(resultModel, histories)]);
}

/** What one call of an event has done. */
function operationsOf({ id, invoked, granted, ran, answered }: Hold): Operation<ResultInput, true>[] {
  const known = { process: id, output: true } as const;
  const operations: Operation<ResultInput, true>[] = [];
  if (granted !== undefined) {
    const executed = ran.find(({ how }) => how === "executed");
    const store = { kind: "store", result: id } as const;
    operations.push({ ...known, input: { kind: "begin", result: id }, invoked, returned: granted });
    operations.push(
      executed
        ? { ...known, input: store, invoked: granted, returned: executed.at }
        : { process: id, output: undefined, input: store, invoked: granted, returned: Infinity },
    );
  }
  if (answered) {
    const input = { kind: "read", result: answered.value } as const;
    operations.push({ ...known, input, invoked, returned: answered.at });
  }
  return operations;
}

/** Stored runs that left no effect, or more than one. */
export function withoutEffect(
  holds: readonly Hold[],
  effects: ReadonlyMap<string, readonly string[]>,
): Hold[] {
  const stored = holds.filter(({ ran }) => ran.some(({ how }) => how === "executed"));
  return stored.filter(
    ({ id, resource }) => effects.get(resource)?.filter((each) => each === id).length !== 1,
  );
}

/** An undecided search does not fail a check, but is reported. */
function checked(title: string, all: readonly ReturnType<typeof linearizableEach>[]): Check {
  const results = all.flatMap((each) => [...each.results]);
  const unclear = results
    .filter(([, { outcome }]) => outcome !== "yes")
    .map(([name, result]) => `${name} ${explain(result)}`);
  const holds = results.every(([, { outcome }]) => outcome !== "no");
  return { title, holds, found: unclear.join("\n        ") || `yes, ${results.length}` };
}
