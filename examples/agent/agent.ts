// A tool of an agent: each step of a run refunds once, however often the step is repeated.

import { endpointsFromEnv, Redlock } from "redlock-edge";
import { Idempotency } from "redlock-edge/idempotency";

const idempotency = new Idempotency(new Redlock({ endpoints: endpointsFromEnv(process.env) }), {
  retention: 7 * 86_400_000, // longer than a run may be resumed
  maxAttempts: 1, // after a crash in the middle, a person decides
});
const shop = process.env.SHOP_URL ?? "https://shop.example";

/** Where a call stands in the workflow. It comes from the engine, and is the same when the step is repeated. */
interface Place {
  readonly run: string;
  readonly step: number;
}

/** What the model has asked for. */
interface Refund {
  readonly order: string;
  readonly cents: number;
  /** Written anew each time, so it is no part of the key. */
  readonly note: string;
}

export async function refund({ run, step }: Place, { order, cents, note }: Refund): Promise<string> {
  const options = { scope: ["agent", run], fingerprint: JSON.stringify([order, cents]) };
  const { value } = await idempotency.run(`${step}:refund`, options, async ({ signal }) => {
    const body = JSON.stringify({ cents, note });
    const answer = await fetch(`${shop}/orders/${encodeURIComponent(order)}/refunds`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      signal,
    });
    if (!answer.ok) throw new Error(`the shop answered ${answer.status}`);
    return await answer.text();
  });
  return value;
}
