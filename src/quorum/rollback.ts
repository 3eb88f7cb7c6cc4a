import { runInBackground, type Settings } from "../lock/options.ts";
import type { Call } from "../redis/register.ts";
import type { Runtime } from "../runtime.ts";
import { type Answer, type Round, runRound } from "./round.ts";

/**
 * Takes back what a round took, on every endpoint where that was, or may be, or may yet be executed: at once
 * where it was answered, after its answer where that comes soon. HTTP keeps no order: where a rollback may
 * have overtaken its request, another follows when the request ends.
 *
 * @param settings `goesOn`: whether its caller still waits for something else, so that the process lives on
 * @param drop withdraws on one endpoint: exactly what this round took, and nothing newer
 * @param everywhere also where the endpoint refused: a holder gives back all it may have
 */
export function rollback(
  settings: Settings & { readonly goesOn?: () => boolean },
  taken: Round<Answer> | undefined,
  drop: (call: Call) => Promise<Answer>,
  everywhere = false,
): Round<Answer> {
  const { endpoints, runtime, timeout } = settings;
  // A failure to take back is no news: it has been reported for the request that is being taken back. Nor does an answer
  // tell how far the endpoint is: this waits for the request before.
  const onFailure = everywhere ? settings.onFailure : undefined;
  return runRound({ endpoints, runtime, onFailure }, timeout, async (call) => {
    const index = endpoints.indexOf(call.endpoint);
    const request = taken?.requests[index];
    if (!request) return drop(call);
    if (!taken.answers[index]) await settledWithin(runtime, timeout / 4, request);
    if (taken.answers[index] || !settings.goesOn?.()) return takeBack(call);
    // Nobody is in a hurry: after the timeout one is enough, unless the endpoint does not heed it.
    const later = settledWithin(runtime, timeout, request).then(
      () => runRound({ endpoints: [call.endpoint], runtime }, timeout, takeBack).done,
    );
    runInBackground(settings, later);
    return { outcome: "lost" };
  });

  async function takeBack(call: Call): Promise<Answer> {
    const index = endpoints.indexOf(call.endpoint);
    const outcome = taken?.answers[index]?.outcome;
    const refused = outcome === "held" || outcome === "lost";
    // A refusal proves that the request was executed and took nothing.
    if (refused && !everywhere) return { outcome: "lost" };
    if (outcome !== "granted" && !refused) {
      const again = taken?.requests[index]?.then((late) => {
        // A timed-out request that fails in the end is as unknown as it was when this rollback was sent.
        if (late.outcome === "held" || late.outcome === "lost") return;
        if (late.outcome === "error" && outcome) return;
        return runRound({ endpoints: [call.endpoint], runtime }, timeout, drop).done;
      });
      runInBackground(settings, again!);
    }
    return drop(call);
  }
}

/** Ends with `request`, or after `ms`. */
function settledWithin(runtime: Runtime, ms: number, request: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = runtime.timer(ms, resolve);
    void request.then(() => {
      cancel();
      resolve();
    });
  });
}
