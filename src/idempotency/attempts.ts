import type { Call, RequestCost } from "../endpoints/call.ts";
import type { Vote } from "../errors.ts";
import type { Settings } from "../lock/options.ts";
import { rollback } from "../quorum/rollback.ts";
import { type Round, runRound, unlessAborted } from "../quorum/round.ts";
import type { Answer, RoundResult } from "../quorum/tally.ts";
import { acquireOrRead, extend, type Register, release } from "../redis/register.ts";
import { countOf, countText } from "./record.ts";
import type { RecordKeys } from "./store.ts";

/** What counting a run needs of it. */
interface Counting extends RecordKeys {
  readonly settings: Settings;
  readonly retention: number;
  readonly maxAttempts: number;
  readonly signal: AbortSignal | undefined;
}

/** A run's place among those of its key that began and neither completed nor failed. */
export interface Attempt {
  /** Whether a quorum has it, undefined when the caller's signal ended that; the handler may not begin before. */
  readonly result: RoundResult | undefined;
  /** How many they are, this one included. */
  readonly count: number;
  /** The handler has not begun: it does not count. */
  undo(): Promise<void>;
  /** The handler has failed, and so has come to an end: nothing counts any more. */
  clear(): Promise<void>;
  votes(): Vote[];
}

/**
 * Counts a run before its handler begins, within `within` ms. A quorum then has its count, which the next run
 * finds at one endpoint at least, and exceeds: each run that began has a count of its own, and none goes missing.
 * Every write compares with what was read or written under this run's token, so that none which comes late can
 * touch what a later run has counted.
 */
export async function countAttempt(
  { settings, counter, retention, maxAttempts, signal }: Counting,
  token: string,
  within: number,
  cost: RequestCost,
): Promise<Attempt> {
  const timeout = Math.min(settings.timeout, within);
  const at = (count: number): Register => ({ keys: [counter], value: countText({ count, token }) });
  type Sight = Answer & { readonly found: string; readonly before: number };
  const snapshot = runRound(
    { ...settings, timeout },
    async (call): Promise<Sight> => {
      const { other } = await acquireOrRead(call, at(1), retention);
      const before = other === undefined ? 0 : countOf(other);
      if (before === undefined) throw new Error("what is stored where runs are counted is no count");
      return { outcome: "granted", found: other ?? at(1).value, before };
    },
    { cost },
  );
  let last: Round<Answer> = snapshot;
  let result = await unlessAborted(snapshot, signal);
  const count =
    1 + Math.max(0, ...snapshot.answers.map((answer) => (answer as Sight | undefined)?.before ?? 0));
  if (result === "granted" && count > 1 && count <= maxAttempts) {
    last = runRound(
      { ...settings, timeout },
      async (call): Promise<Answer> => {
        const seen = await snapshot.requests[settings.endpoints.indexOf(call.endpoint)]!;
        if (seen.outcome === "error") throw seen.cause;
        return extend(call, { keys: [counter], value: seen.found }, retention, at(count).value);
      },
      { cost },
    );
    result = await unlessAborted(last, signal);
  }
  // The result may have fallen before every endpoint answered: what takes the count back must not overtake it.
  const takeBack = (perform: (call: Call) => Promise<Answer>) => rollback(settings, last, perform).done;
  const clear = () => takeBack((call) => release(call, at(count)));
  return {
    result,
    count,
    clear,
    async undo() {
      if (count > maxAttempts) return;
      // Nothing but the first question has been written.
      if (last === snapshot) return takeBack((call) => release(call, at(1)));
      await takeBack((call) => extend(call, at(count), retention, at(count - 1).value));
    },
    votes: () => last.votes(),
  };
}
