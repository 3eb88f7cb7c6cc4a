import type { Ask } from "../endpoints/ask.ts";
import type { Decision } from "../lock/protocol.ts";
import { type Round, runRound } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import { undoQuietly, unlessRefused } from "../quorum/undo.ts";
import { type Cell, claimOrRead, end, keep } from "../redis/cell.ts";
import { foreignData } from "../redis/script.ts";
import { countOf, countText } from "./record.ts";
import type { RunRequest } from "./run-request.ts";

export interface CountedRun extends Decision {
  /** How many runs did not end, if these are too many: this run must not begin. */
  readonly dead: number | undefined;
  /** @param hasBegun whether the handler has begun and failed: then the key starts from 0 again */
  takeBack(hasBegun: boolean): Promise<void>;
}

type CountSnapshot = Answer & {
  readonly text: string;
  readonly before: number;
};

/**
 * Counts a run before its handler begins. The next run meets this quorum, so no run goes missing. Every write compares,
 * so that a late write cannot change a later run's count.
 *
 * @param within ms of the claim that remain
 */
export async function countRun(
  { settings, counter, retention, maxAttempts }: RunRequest<unknown>,
  token: string,
  within: number,
): Promise<CountedRun> {
  const cellOf = (count: number): Cell => ({ keys: [counter], value: countText({ count, token }) });
  const options = { timeout: within };
  const reading = runRound(settings, (call) => readOrWrite(call, cellOf(1), retention), options);
  const isRead = (await reading.result) === "granted";
  const count = 1 + Math.max(0, ...reading.answers().map(({ before }) => before));
  const raiseOne = async (call: Ask, index: number): Promise<Answer> => {
    const snapshot = await reading.calls[index]!.ended;
    if (snapshot.outcome === "error") throw snapshot.cause;
    return keep(call, { keys: [counter], value: snapshot.text }, retention, cellOf(count).value);
  };
  const isRaised = isRead && count > 1 && count <= maxAttempts;
  const last: Round = isRaised ? runRound(settings, raiseOne, options) : reading;
  let takenBack: Promise<void> | undefined;
  return {
    result: last.result,
    votes: () => last.votes(),
    dead: isRead && count > maxAttempts ? count - 1 : undefined,
    takeBack(hasBegun) {
      if (count > maxAttempts) return Promise.resolve();
      const own = cellOf(isRaised ? count : 1);
      const takeBackOne = (call: Ask) =>
        isRaised && !hasBegun ? keep(call, own, retention, cellOf(count - 1).value) : end(call, own);
      // The undo must not overtake the requests of slow endpoints.
      takenBack ??= undoQuietly(settings, last.calls, unlessRefused(takeBackOne)).mostlyDone();
      return takenBack;
    },
  };
}

async function readOrWrite(call: Ask, first: Cell, retention: number): Promise<CountSnapshot> {
  const { other } = await claimOrRead(call, first, retention);
  const before = other === undefined ? 0 : countOf(other);
  if (before === undefined) throw new Error(foreignData(first.keys));
  return { outcome: "granted", text: other ?? first.value, before };
}
