import { handOver, type Settings } from "./options.ts";
import { type Answer, ask, type Round } from "./quorum.ts";
import type { Call } from "./register.ts";

/**
 * Takes back what a round asked for, on every endpoint where it was, or may be, or may yet be executed. A
 * request that is unanswered now gets a second withdrawal when it ends: HTTP keeps no order, so the first may
 * have overtaken it.
 *
 * @param drop withdraws on one endpoint, exactly what this round asked for and nothing newer
 * @param now false when the first withdrawal has been sent already
 * @returns ends when every endpoint has answered or timed out
 */
export async function withdraw(
  settings: Settings,
  round: Round<Answer>,
  drop: (call: Call) => Promise<Answer>,
  now = true,
): Promise<void> {
  const { runtime, timeout } = settings;
  await Promise.all(
    settings.endpoints.map(async (endpoint, index) => {
      // Failures are not reported: they have been, for the request that is being withdrawn.
      const send = () => ask({ endpoints: [endpoint], runtime }, timeout, drop).done;
      const request = round.requests[index]!;
      let answer = round.answers[index];
      // A refusal proves that the request was executed and granted nothing.
      const first = now && answer?.outcome !== "held" ? send() : undefined;
      if (!answer) {
        await Promise.race([request, round.done]);
        answer = round.answers[index]!;
        if (answer.outcome !== "held") await send();
      }
      if (answer.outcome === "error") {
        // A client that cannot cancel goes on after its timeout; nobody should have to wait for that.
        handOver(
          settings,
          request.then((late) => (late.outcome === "granted" ? send() : undefined)),
        );
      }
      await first;
    }),
  );
}
