import { isEndpointError } from "../errors/errors.ts";
import { keepAlive, settledWithin, sleep } from "../runtime/runtime.ts";
import { type Call, type Round, type RoundContext, runRound } from "./round.ts";
import type { Answer } from "./tally.ts";

/** Takes back exactly the writes that the claim may have made at one endpoint. */
export type Release = (call: Call, claim: Call) => Promise<Answer>;

/**
 * Undoes claims, one for each endpoint. HTTP keeps no order, so a claim without an answer may be executed after its
 * undo: the undo first waits up to a quarter of the timeout for the claim to settle. It releases the claim once more in
 * these cases:
 *
 * - The claim is granted after the release. Or it fails after it, with neither an answer nor a timeout before.
 * - The release of a granted claim has failed.
 *
 * A release for which there was no room is sent as soon as there is.
 */
export function undo(context: RoundContext, claims: readonly Call[], release: Release): Round {
  const takeBack = (call: Call, claim: Call): Promise<Answer> => {
    const released = release(call, claim);
    // If granted claims are left behind, contenders keep each other out.
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

/** The failures of the claims have been reported, so those of the undo are no news. */
export function undoQuietly(context: RoundContext, claims: readonly Call[], release: Release): Round {
  return undo({ ...context, onFailure: undefined }, claims, release);
}

export function unlessRefused(release: Release): Release {
  return (call, claim) =>
    claim.hasDoneNothing ? Promise.resolve({ outcome: "lost" }) : release(call, claim);
}

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
  // The claim may have been executed after its undo.
  const isLate = late.outcome === "granted" || (late.outcome === "error" && claim.isSent && !before);
  if (isLate || isDropped(error)) await sendAgain(context, claim, release);
}

/** Again while there is no room, because the value would stand until its ttl. */
async function sendAgain(context: RoundContext, claim: Call, release: Release): Promise<void> {
  const { runtime, timeout } = context;
  const alone = { ...context, endpoints: [claim.endpoint], onFailure: undefined };
  for (;;) {
    const round = runRound(alone, (call) => release(call, claim));
    await round.done;
    const { answer } = round.calls[0]!;
    if (answer?.outcome !== "error" || !isDropped(answer.cause)) return;
    // A user's endpoint may say that at once.
    await sleep(runtime, Math.max(0, timeout - round.elapsed()));
  }
}

/** After another failure, a release would fail again at once. */
function isDropped(error: unknown): boolean {
  return isEndpointError(error) && error.unsent && error.kind === "timeout";
}
