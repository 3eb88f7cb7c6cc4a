import type { Endpoint } from "../endpoints/endpoint.ts";
import type { EndpointCall } from "../endpoints/endpoint-call.ts";
import { runInBackground, settledWithin, sleep, type WaitUntil } from "../runtime.ts";
import type { Progress } from "./retry.ts";
import { type Failure, type Round, type RoundContext, runRound } from "./round.ts";
import type { Answer } from "./tally.ts";

/** What a rollback needs of its client. */
export interface RollbackContext extends RoundContext {
  readonly waitUntil?: WaitUntil | undefined;
  /** The call that may go on with another attempt. Default: nothing goes on. */
  readonly caller?: Pick<Progress, "isWaiting" | "keep">;
}

/**
 * Rolls back a round that claims. Where the claim was granted, the endpoint is asked at once; else as {@link Unsettled} says.
 *
 * @param claimRound undefined: nothing is known of the requests that may have been executed
 * @param release rolls back at one endpoint: exactly what this claim acquired, and nothing newer
 * @param options `everywhere`: also where the claim has acquired nothing for certain, and failures are reported. For a
 * holder, which releases all it may have. Default false
 */
export function rollback(
  context: RollbackContext,
  claimRound: Round<Answer> | undefined,
  release: ReleaseOne,
  { everywhere = false }: { readonly everywhere?: boolean } = {},
): Round<Answer> {
  const { endpoints, runtime, timeout, waitUntil } = context;
  // The failure of the claim itself has been reported already. Without `latencies`: a rollback waits for the claim first, so
  // its answers say nothing of the endpoint.
  const onFailure = everywhere ? context.onFailure : undefined;
  const quiet = { endpoints, runtime, timeout, waitUntil, onFailure };
  const isGranted = (index: number) => claimRound?.answers[index]?.outcome === "granted";
  const releaseOne: ReleaseOne = (call) => {
    const index = endpoints.indexOf(call.endpoint);
    if (!claimRound || isGranted(index)) return release(call);
    return new Unsettled({ context, claimRound, index, release, everywhere }).begin(call);
  };
  return sendRollback(quiet, releaseOne, isGranted);
}

type ReleaseOne = (call: EndpointCall) => Promise<Answer>;

interface UnsettledParts {
  readonly context: RollbackContext;
  readonly claimRound: Round<Answer>;
  readonly index: number;
  readonly release: ReleaseOne;
  readonly everywhere: boolean;
}

/**
 * The rollback at an endpoint that has not granted the claim, or not yet. HTTP keeps no order, so the claim may be executed
 * after its rollback. A claim that has not timed out yet is waited for, for a quarter of the timeout. The rollback is sent
 * again once the claim has ended, unless that shows that it was not executed since.
 */
class Unsettled {
  readonly #parts: UnsettledParts;

  constructor(parts: UnsettledParts) {
    this.#parts = parts;
  }

  async begin(call: EndpointCall): Promise<Answer> {
    const { context, claimRound, index } = this.#parts;
    const { runtime, timeout } = context;
    const eventual = claimRound.eventualAnswers[index]!;
    if (!this.#answer) await settledWithin(runtime, timeout / 4, eventual);
    const { caller } = context;
    if (this.#answer || !caller?.isWaiting()) return this.#release(call);
    // The caller goes on, so there is time: after the answer one rollback is enough.
    const later = settledWithin(runtime, timeout, eventual).then(() =>
      this.#sendAgain((again) => this.#release(again)),
    );
    caller.keep(later);
    return nothingToDo;
  }

  /** The answer to the claim, where that is known. One that has timed out has failed. */
  get #answer(): Answer | Failure | undefined {
    const { claimRound, index } = this.#parts;
    return claimRound.answers[index];
  }

  async #release(call: EndpointCall): Promise<Answer> {
    const { context, release, everywhere } = this.#parts;
    const answer = this.#answer;
    // A holder also releases where the claim was refused: it may have been restored there since.
    if (!everywhere && acquiredNothing(answer)) return nothingToDo;
    // As text, because nobody may hear a NOSCRIPT any more.
    call.sendsText ||= answer?.outcome !== "granted";
    const released = release(call);
    if (!answer || answer.outcome === "error") runInBackground(context, this.#repeatIfOvertaken(released));
    return released;
  }

  /** Repeats a rollback that the claim may have been executed after, once the claim is answered. */
  async #repeatIfOvertaken(released: Promise<Answer>): Promise<void> {
    const { context, claimRound, index, release } = this.#parts;
    const hadFailed = this.#answer !== undefined;
    const isOver = settledWithin(
      context.runtime,
      context.timeout,
      released.catch(() => undefined),
    );
    const late = await claimRound.eventualAnswers[index]!;
    if (acquiredNothing(late)) return;
    // It had failed before: another failure says nothing new.
    if (late.outcome === "error" && hadFailed) return;
    // After the first rollback has ended: beside it, this one could delete the value, and the first one, which counts, would
    // find nothing.
    await isOver;
    await this.#sendAgain(release);
  }

  #sendAgain(release: ReleaseOne): Promise<void> {
    const { endpoints, runtime, timeout, waitUntil } = this.#parts.context;
    const context = { endpoints: [endpoints[this.#parts.index]!], runtime, timeout, waitUntil };
    return sendRollback(context, byText(release)).done;
  }
}

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
 * - once, when its timeout is over, where it failed otherwise and the claim was granted: where many contend, what lost
 *   rollbacks leave would keep all of them out.
 */
function sendRollback(
  context: RollbackContext,
  release: ReleaseOne,
  isGranted: (index: number) => boolean = () => false,
): Round<Answer> {
  const { endpoints, runtime, timeout } = context;
  const round = runRound(context, release);
  const repeat = async (endpoint: Endpoint, index: number) => {
    const answer = await round.eventualAnswers[index]!;
    if (answer.outcome !== "error") return;
    const { unsent } = answer;
    if (!unsent && !isGranted(index)) return;
    if (!unsent) await sleep(runtime, timeout - round.elapsed());
    // One that was repeated has had its second chance.
    const isGrantedThere = unsent ? () => isGranted(index) : undefined;
    await sendRollback({ ...context, endpoints: [endpoint] }, byText(release), isGrantedThere).done;
  };
  void round.done.then(() => {
    for (const [index, endpoint] of endpoints.entries()) {
      if (round.answers[index]?.outcome === "error") runInBackground(context, repeat(endpoint, index));
    }
  });
  return round;
}
