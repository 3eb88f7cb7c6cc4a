import type { Endpoint } from "../endpoints/endpoint.ts";
import type { EndpointRequest } from "../endpoints/endpoint-request.ts";
import { runInBackground, settledWithin, sleep, type WaitUntil } from "../runtime.ts";
import { type Failure, type Round, type RoundContext, runRound } from "./round.ts";
import type { Answer } from "./tally.ts";

/** What a rollback needs of its client. */
export interface RollbackContext extends RoundContext {
  readonly waitUntil?: WaitUntil | undefined;
  /** Whether the caller still waits for something else, so that the process lives on. Default: it does not. */
  readonly isCallerWaiting?: () => boolean;
}

/**
 * Rolls back a round. An endpoint that has answered is asked at once. One that has not is asked after its answer, or after a
 * quarter of the timeout, and asked again when its answer shows that the round's request may have been executed after the
 * rollback: HTTP keeps no order.
 *
 * @param round undefined: nothing is known of the requests that may have been executed
 * @param release rolls back at one endpoint: exactly what this round acquired, and nothing newer
 * @param options `everywhere`: also where the round has acquired nothing for certain, and failures are reported. For a
 * holder, which releases all it may have. Default false
 */
export function rollback(
  context: RollbackContext,
  round: Round<Answer> | undefined,
  release: ReleaseOne,
  { everywhere = false }: { readonly everywhere?: boolean } = {},
): Round<Answer> {
  const { endpoints, runtime, timeout, waitUntil } = context;
  // The failure of the round itself has been reported already. Without `latencies`: a rollback waits for the round's own
  // request first, so its answers say nothing of the endpoint.
  const onFailure = everywhere ? context.onFailure : undefined;
  const sending = { endpoints, runtime, timeout, waitUntil, onFailure };
  const isGranted = (index: number) => round?.answers[index]?.outcome === "granted";
  // All was executed, or nothing is known: there is no request to wait for.
  if (!round || endpoints.every((_, index) => isGranted(index))) {
    return sendRollback(sending, release, isGranted);
  }
  const sendAgain = ({ endpoint }: EndpointRequest, again: ReleaseOne) =>
    sendRollback({ ...sending, endpoints: [endpoint], onFailure: undefined }, byText(again)).done;

  /** Repeats a rollback that may have overtaken its request, once that is answered. */
  const repeatIfOvertaken = async (call: EndpointRequest, released: Promise<Answer>) => {
    const index = endpoints.indexOf(call.endpoint);
    const hadTimedOut = round.answers[index] !== undefined;
    const isOver = settledWithin(
      runtime,
      timeout,
      released.catch(() => undefined),
    );
    const late = await round.eventualAnswers[index]!;
    if (late.outcome === "held" || late.outcome === "lost") return;
    // It had timed out, and has failed now: that says no more than was known.
    if (late.outcome === "error" && hadTimedOut) return;
    // After the first rollback has ended: beside it, this one could delete the value, and the first one, which counts, would
    // find nothing.
    await isOver;
    await sendAgain(call, release);
  };

  const releaseNow: ReleaseOne = async (call) => {
    const answer = round.answers[endpoints.indexOf(call.endpoint)];
    if (!everywhere && acquiredNothing(answer)) return nothingToDo;
    // What was refused may have been restored since by its holder. What was granted is rolled back again if this fails.
    call.sendsText ||= answer?.outcome !== "granted";
    const released = release(call);
    if (!answer || answer.outcome === "error") runInBackground(context, repeatIfOvertaken(call, released));
    return released;
  };

  const releaseInOrder: ReleaseOne = async (call) => {
    const index = endpoints.indexOf(call.endpoint);
    const answered = round.eventualAnswers[index]!;
    if (!round.answers[index]) await settledWithin(runtime, timeout / 4, answered);
    if (round.answers[index] || !context.isCallerWaiting?.()) return releaseNow(call);
    // The caller goes on, so there is time: after the answer one rollback is enough.
    const later = settledWithin(runtime, timeout, answered).then(() => sendAgain(call, releaseNow));
    runInBackground(context, later);
    return nothingToDo;
  };
  return sendRollback(sending, releaseInOrder, isGranted);
}

type ReleaseOne = (call: EndpointRequest) => Promise<Answer>;

// Stryker disable next-line ObjectLiteral,StringLiteral: nobody reads the votes of a rollback that has this
const nothingToDo: Answer = { outcome: "lost" };

/** Whether a request was executed and refused, or was never sent. */
function acquiredNothing(answer: Answer | Failure | undefined): boolean {
  if (answer?.outcome === "error") return answer.unsent === "all";
  return answer?.outcome === "held" || answer?.outcome === "lost";
}

/** The same, with its script as text: it follows a request that was not answered. */
function byText(release: ReleaseOne): ReleaseOne {
  return (call) => {
    call.sendsText = true;
    return release(call);
  };
}

/**
 * Sends a rollback to every endpoint. Where it fails, it is sent later:
 * - as soon as there is room for it, where it was not sent in time, or only a hash that the server does not know. Otherwise
 *   what it is to delete would certainly stand until its ttl;
 * - once, when its timeout is over, where it failed otherwise and `repeatsFailed` says so: where many contend, what lost
 *   rollbacks leave would keep all of them out.
 */
function sendRollback(
  context: RollbackContext,
  release: ReleaseOne,
  repeatsFailed: (index: number) => boolean = () => false,
): Round<Answer> {
  const { endpoints, runtime, timeout } = context;
  const round = runRound(context, release);
  const repeat = async (endpoint: Endpoint, index: number) => {
    const answer = await round.eventualAnswers[index]!;
    if (answer.outcome !== "error") return;
    const { unsent } = answer;
    if (!unsent && !repeatsFailed(index)) return;
    if (!unsent) await sleep(runtime, timeout - round.elapsed());
    const repeatsAgain = unsent ? () => repeatsFailed(index) : undefined;
    await sendRollback({ ...context, endpoints: [endpoint] }, byText(release), repeatsAgain).done;
  };
  void round.done.then(() => {
    for (const [index, endpoint] of endpoints.entries()) {
      if (round.answers[index]?.outcome === "error") runInBackground(context, repeat(endpoint, index));
    }
  });
  return round;
}
