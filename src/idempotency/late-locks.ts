import type { Endpoint } from "../endpoints/endpoint.ts";
import type { EndpointRequest } from "../endpoints/endpoint-request.ts";
import type { Settings } from "../lock/options.ts";
import { rollback } from "../quorum/rollback.ts";
import type { Round } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import type { CellAnswer } from "../redis/cell.ts";
import { runInBackground } from "../runtime.ts";
import type { ClaimOperations } from "./claim.ts";

// A begin may be executed after the end of its run: at an endpoint that did not answer before. Then its locks are held
// for nobody.

/**
 * Operations that note what the end of a run finds at each endpoint, and `freeLate`, to be called when the run has ended:
 * where the begin was unanswered, and the end did not find its record, it frees the claim when the begin is answered
 * or has timed out. Without locks nothing is sent: a pending record beside a stored result keeps nobody away.
 */
export function watchEnd(
  settings: Settings,
  { operations, round }: { readonly operations: ClaimOperations; readonly round: Round<CellAnswer> },
): { readonly operations: ClaimOperations; readonly freeLate: () => void } {
  const late = settings.endpoints.filter((_, index) => !round.answers[index]);
  if (!operations.fence || late.length === 0) return { operations, freeLate: () => undefined };
  const ends = new Map<Endpoint, Promise<CellAnswer>>();
  const free = async (call: EndpointRequest): Promise<Answer> => {
    const end = await ends.get(call.endpoint)!.catch(() => undefined);
    const isOver = !late.includes(call.endpoint) || end?.outcome === "granted";
    // Stryker disable next-line ObjectLiteral,StringLiteral: nobody reads the votes of this rollback
    return isOver ? { outcome: "lost" } : operations.free(call);
  };
  return {
    operations: {
      ...operations,
      complete(call, text, retention) {
        const end = operations.complete(call, text, retention);
        ends.set(call.endpoint, end);
        return end;
      },
    },
    freeLate() {
      // Nothing waits for it, so one request is enough.
      runInBackground(settings, rollback({ ...settings, isCallerWaiting: () => true }, round, free).done);
    },
  };
}
