import type { EndpointRequest } from "../endpoints/endpoint-request.ts";
import { runInBackground, sleep, type WaitUntil } from "../runtime.ts";
import { type Round, type RoundContext, runRound } from "./round.ts";
import { settledWithin } from "./settled.ts";
import type { Answer } from "./tally.ts";

/** What a rollback needs of its client. */
export interface RollbackContext extends RoundContext {
  readonly waitUntil?: WaitUntil | undefined;
  /** Whether the caller still waits for something else, so that the process lives on. Default: it does not. */
  readonly isCallerWaiting?: () => boolean;
}

/**
 * Rolls back a round on every endpoint where its request was, or may still be, executed: at once where it was answered,
 * after its answer where that arrives soon. HTTP keeps no order: where a rollback may have overtaken its request,
 * another one follows when the request ends.
 *
 * @param round undefined: another process ran it
 * @param release rolls back on one endpoint: exactly what this round acquired, and nothing newer
 * @param options `includeRefused`: also where the endpoint refused, because a holder releases all it may have. Default false
 */
export function rollback(
  context: RollbackContext,
  round: Round<Answer> | undefined,
  release: (call: EndpointRequest) => Promise<Answer>,
  { includeRefused = false }: { readonly includeRefused?: boolean } = {},
): Round<Answer> {
  const { endpoints, runtime, timeout } = context;
  // A failed rollback is not reported: its request has been, already.
  const onFailure = includeRefused ? context.onFailure : undefined;
  // The usual release: nothing is under way that it could overtake.
  if (round?.answers.every((answer) => answer?.outcome === "granted")) {
    return sendRollback({ ...context, onFailure }, release, () => true);
  }
  const again = ({ endpoint }: EndpointRequest, perform: Perform) =>
    sendRollback({ ...context, endpoints: [endpoint], onFailure: undefined }, byText(perform)).done;

  async function rollbackOne(call: EndpointRequest): Promise<Answer> {
    const index = endpoints.indexOf(call.endpoint);
    const answer = round!.answers[index];
    const outcome = answer?.outcome;
    const refused = outcome === "held" || outcome === "lost";
    // A refusal proves that the request was executed and acquired nothing; what was never sent is never executed.
    const isUnsent = answer?.outcome === "error" && answer.isUnsent;
    if ((refused || isUnsent) && !includeRefused) return { outcome: "lost" };
    const request = round!.requests[index];
    const isUnanswered = outcome !== "granted" && !refused;
    // Where it was refused, its holder may have restored it since. Where it was granted, this one is repeated.
    call.sendsText ||= outcome !== "granted";
    const released = release(call);
    if (isUnanswered && request) {
      const ended = settledWithin(
        runtime,
        timeout,
        released.catch(() => undefined),
      );
      const repeated = request.then(async (late) => {
        // A timed-out request that fails in the end is as unknown as it was when this rollback was sent.
        if (late.outcome === "held" || late.outcome === "lost") return;
        if (late.outcome === "error" && outcome) return;
        // Otherwise it could be executed first, and the rollback that counts would find nothing.
        await ended;
        await again(call, release);
      });
      runInBackground(context, repeated);
    }
    return released;
  }

  const stands = (index: number) => round?.answers[index]?.outcome === "granted";
  const performOne = async (call: EndpointRequest): Promise<Answer> => {
    const index = endpoints.indexOf(call.endpoint);
    const request = round?.requests[index];
    if (!request) return release(call);
    if (!round.answers[index]) await settledWithin(runtime, timeout / 4, request);
    if (round.answers[index] || !context.isCallerWaiting?.()) return rollbackOne(call);
    // Nothing waits for it: after the timeout one rollback is enough, unless the endpoint ignores its signal.
    const later = settledWithin(runtime, timeout, request).then(() => again(call, rollbackOne));
    runInBackground(context, later);
    // Stryker disable next-line ObjectLiteral,StringLiteral: nobody reads the votes of this rollback
    return { outcome: "lost" };
  };
  return sendRollback({ ...context, onFailure }, performOne, stands);
}

type Perform = (call: EndpointRequest) => Promise<Answer>;

/** The same, with its script as text: it follows a request that was not answered. */
function byText(perform: Perform): Perform {
  return (call) => {
    call.sendsText = true;
    return perform(call);
  };
}

/**
 * A round, of which what had no room until its timeout, or met a server that did not know its script, is sent later: else
 * what it is to delete is certain to stand until its ttl. What failed otherwise follows once more, when its timeout is over,
 * if something stands there: where many contend, what lost rollbacks leave would keep all of them out.
 *
 * @param stands whether it is known that what is rolled back was granted by this endpoint. Default: it is not
 */
function sendRollback(
  context: RollbackContext,
  perform: Perform,
  stands: (index: number) => boolean = () => false,
): Round<Answer> {
  const { endpoints, runtime, timeout, onFailure } = context;
  // Its answers do not count as latencies, because it waits for the request before.
  const round = runRound({ endpoints, runtime, timeout, onFailure }, perform);
  void round.done.then(() => {
    for (const [index, endpoint] of endpoints.entries()) {
      if (round.answers[index]?.outcome !== "error") continue;
      const repeated = round.requests[index]!.then(async (answer) => {
        if (answer.outcome !== "error") return;
        const isUnsent = answer.isUnsent || answer.hasUnsent;
        if (!isUnsent && !stands(index)) return;
        if (!isUnsent) await sleep(runtime, timeout - round.elapsed());
        const mayRepeat = isUnsent ? () => stands(index) : undefined;
        await sendRollback({ ...context, endpoints: [endpoint] }, byText(perform), mayRepeat).done;
      });
      runInBackground(context, repeated);
    }
  });
  return round;
}
