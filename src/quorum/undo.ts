import { isEndpointError } from "../errors/errors.ts";
import { keepAlive, settledWithin, sleep } from "../runtime/runtime.ts";
import { type Call, type Round, type RoundContext, runRound } from "./round.ts";
import type { Answer } from "./tally.ts";

export type Release = (call: Call, claim: Call) => Promise<Answer>;

/**
 * Undoes claims, one for each endpoint. HTTP keeps no order, so a claim may be executed after its undo. The undo waits
 * for a quarter of the timeout until the claim settles. It releases the claim once more if the claim is granted later,
 * if it fails later and had neither an answer nor a timeout before, or if the release of a granted claim fails. If
 * there is no room for a release, it is sent as soon as there is.
 */
export function undo(context: RoundContext, claims: readonly Call[], release: Release): Round {
  const takeBack = (call: Call, claim: Call): Promise<Answer> => {
    const released = release(call, claim);
    // Claims that are left behind would keep contenders out.
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

/** The failures have been reported with the claims. */
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
    // A user's endpoint may fail at once.
    await sleep(runtime, Math.max(0, timeout - round.elapsed()));
  }
}

/** Any other failure would happen again. */
function isDropped(error: unknown): boolean {
  return isEndpointError(error) && error.unsent && error.kind === "timeout";
}
