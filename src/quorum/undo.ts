import { isEndpointError } from "../errors/errors.ts";
import { keepAlive, settledWithin, sleep } from "../runtime/runtime.ts";
import { type Call, type Round, type RoundContext, runRound } from "./round.ts";
import type { Answer } from "./tally.ts";

/** Takes back on one endpoint exactly the writes that the claim may have made there, and nothing newer. */
export type Release = (call: Call, claim: Call) => Promise<Answer>;

/**
 * Undoes claims, one for each endpoint. A release does that, too. HTTP keeps no order, so a claim without an answer may be
 * executed after its undo. At each endpoint, the undo waits until the claim there has settled, for a quarter of the timeout
 * at most. Then it is released. It is released once more in these cases:
 *
 * - The claim is granted after that. Or it fails after that, and had neither an answer nor a timeout before.
 * - The release has failed, by a timeout for example, and the claim was granted there.
 *
 * A release for which there was no room is sent as soon as there is.
 */
export function undo(context: RoundContext, claims: readonly Call[], release: Release): Round {
  const takeBack = (call: Call, claim: Call): Promise<Answer> => {
    const released = release(call, claim);
    // If a granted claim is left behind at many endpoints, contenders keep each other out.
    if (claim.isOver) released.catch(() => keepAlive(context, sendAgain(context, claim, release)));
    else keepAlive(context, repeatIfLate(context, claim, { released, release }));
    return released;
  };
  return runRound(context, (call, index) => {
    const claim = claims[index]!;
    if (claim.answer) return takeBack(call, claim);
    const { runtime, timeout } = context;
    return settledWithin(runtime, timeout / 4, claim.settled).then(() => takeBack(call, claim));
  });
}

/** Undoes claims whose failures have been reported, so that failures of their undo are not news. */
export function undoQuietly(context: RoundContext, claims: readonly Call[], release: Release): Round {
  return undo({ ...context, onFailure: undefined }, claims, release);
}

/** The release of a value: if its claim was refused or never sent, there is nothing to do. */
export function unlessRefused(release: Release): Release {
  return (call, claim) =>
    claim.hasDoneNothing ? Promise.resolve({ outcome: "lost" }) : release(call, claim);
}

/** Sends the undo of a claim without an answer once more, if the claim may have been executed after it. */
async function repeatIfLate(
  context: RoundContext,
  claim: Call,
  { released, release }: { readonly released: Promise<Answer>; readonly release: Release },
): Promise<void> {
  const before = claim.answer;
  const error: unknown = await released.then(
    () => undefined,
    (reason) => reason,
  );
  const late = await claim.ended;
  // It was answered after its undo, or it had no answer then and has failed since, so it may have been executed last.
  const isLate = late.outcome === "granted" || (late.outcome === "error" && claim.isSent && !before);
  if (isLate || isDropped(error)) await sendAgain(context, claim, release);
}

/** If there is no room to send it, it is tried again, because the value would stand until its ttl. */
async function sendAgain(context: RoundContext, claim: Call, release: Release): Promise<void> {
  const { runtime, timeout } = context;
  const alone = { ...context, endpoints: [claim.endpoint], onFailure: undefined };
  for (;;) {
    const round = runRound(alone, (call) => release(call, claim));
    await round.done;
    const { answer } = round.calls[0]!;
    if (answer?.outcome !== "error" || !isDropped(answer.cause)) return;
    // An endpoint that a user has made may say that at once.
    await sleep(runtime, Math.max(0, timeout - round.elapsed()));
  }
}

/** Whether it was given up because there was no room to send it. If it fails otherwise, it would fail again at once. */
function isDropped(error: unknown): boolean {
  return isEndpointError(error) && error.unsent && error.kind === "timeout";
}
