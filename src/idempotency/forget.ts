import type { Ask } from "../endpoints/ask.ts";
import { QuorumError, type Vote } from "../errors/errors.ts";
import type { Settings } from "../lock/options.ts";
import { runRound, untilUsable } from "../quorum/round.ts";
import { type Answer, quorumOf } from "../quorum/tally.ts";
import { end } from "../redis/cell.ts";
import { InProgressError, RecordCorruptError } from "./errors.ts";
import type { Idempotency } from "./idempotency.ts";
import { type KeyOptions, type KeyReading, type KeySnapshot, openKey, readKey } from "./inspect.ts";
import { classifyRecords, isPending, noFingerprint } from "./record.ts";
import type { RecordKeys } from "./run-request.ts";

const maxRemovals = 3;

/**
 * Removes the key's result and count of attempts, so that the key can run again. A run that is running stays, because
 * two handlers would run.
 *
 * @returns whether there was anything to remove
 * @throws InProgressError when a run is running
 * @throws RecordCorruptError when the value has another type, such as a list: it stays
 * @throws QuorumError when an endpoint did not answer, because the next run would find its copy
 *
 * @example
 * await forgetKey(idempotency, `fulfil:${event.id}`, { scope: "stripe" });
 */
export async function forgetKey(
  idempotency: Idempotency,
  key: string,
  options: KeyOptions = {},
): Promise<boolean> {
  const { settings, keys } = await openKey("forgetKey", idempotency, key, options);
  for (let removals = 0; ; removals += 1) {
    const reading = await readKey(settings, keys, "forget");
    const { snapshots, texts, round } = reading;
    const step = nextStep(reading, settings.endpoints.length);
    // It has begun since the removal.
    if (step === "done" || (step === "busy" && removals > 0)) return removals > 0;
    if (step === "busy") {
      throw new InProgressError(keys.key, Math.max(1_000, ...snapshots.map(({ remaining }) => remaining)));
    }
    const isStuck = step === "remove" && removals >= maxRemovals;
    // The scripts read a list or a hash as empty, and never remove it.
    if (isStuck && texts.includes("")) throw new RecordCorruptError(keys.key);
    if (isStuck || step === "unclear") throw new QuorumError("forget", [keys.key], round.votes());
    const votes = await remove(settings, keys, reading);
    if (untilUsable(votes) > 0) throw new QuorumError("forget", [keys.key], votes);
  }
}

function nextStep({ snapshots, texts }: KeyReading, count: number): "busy" | "done" | "unclear" | "remove" {
  if (classifyRecords(texts, noFingerprint, count).kind === "busy") return "busy";
  const silent = count - snapshots.length;
  const isClean = snapshots.every(
    ({ text, counted }) => counted === "" && (text === undefined || isPending(text)),
  );
  if (isClean) return silent === 0 ? "done" : "unclear";
  // A silent endpoint may complete a run's quorum, and its copy would be found again.
  const mayBeRunning = texts.filter(isPending).length + silent >= quorumOf(count);
  return mayBeRunning ? "unclear" : "remove";
}

/** Compares, so that a run that has begun since stays. */
async function remove(
  settings: Settings,
  { name, counter }: RecordKeys,
  { round }: KeyReading,
): Promise<readonly Vote[]> {
  const removeOne = async (call: Ask, index: number): Promise<Answer> => {
    const snapshot = round.calls[index]!.answer!;
    // This endpoint has shown nothing to remove.
    if (snapshot.outcome === "error") return { outcome: "lost" };
    const { text, counted }: KeySnapshot = snapshot;
    if (text !== undefined && !isPending(text)) await end(call, { keys: [name], value: text });
    if (counted) await end(call, { keys: [counter], value: counted });
    return { outcome: "granted" };
  };
  const removal = runRound(settings, removeOne);
  await removal.done;
  return removal.votes();
}
