// Tools of an agent: each call acts once, however often its step is repeated, or the model asks for it again.

import { endpointsFromEnv, Redlock } from "redlock-edge";
import { canonicalKey, Idempotency } from "redlock-edge/idempotency";

const idempotency = new Idempotency(new Redlock({ endpoints: endpointsFromEnv(process.env) }), {
  retention: 7 * 86_400_000, // longer than a run may be resumed
  maxAttempts: 1, // after a crash in the middle, a person decides
});
const shop = process.env.SHOP_URL ?? "https://shop.example";

/** Where a call stands in the workflow. It comes from the engine, and is the same when the step is repeated. */
interface Place {
  readonly run: string;
  /** Undefined: the engine has no steps. Then a run calls a tool once with the same arguments. */
  readonly step?: number;
}

/** What the model has asked for. */
interface Refund {
  readonly order: string;
  readonly cents: number;
  /** Written anew each time, so it is no part of the key. */
  readonly note: string;
}

export function refund(place: Place, args: Refund): Promise<string> {
  return callOnce(place, { name: "refund", args, exclude: ["note"] }, async (signal, key) => {
    const answer = await fetch(`${shop}/orders/${encodeURIComponent(args.order)}/refunds`, {
      method: "POST",
      // A call that fails is made again, and may have acted.
      headers: { "content-type": "application/json", "idempotency-key": key },
      body: JSON.stringify({ cents: args.cents, note: args.note }),
      signal,
    });
    if (!answer.ok) throw new Error(`the shop answered ${answer.status}`);
    return await answer.text();
  });
}

type Tool = (signal: AbortSignal, key: string) => Promise<string>;

interface Call {
  readonly name: string;
  readonly args: object;
  /** Arguments that the model writes anew each time. */
  readonly exclude: readonly string[];
}

/** Runs a tool once, and returns its stored result after that. */
async function callOnce({ run, step }: Place, call: Call, tool: Tool): Promise<string> {
  const { name, args, exclude } = call;
  const fingerprint = await canonicalKey(name, args, { exclude });
  const key = step === undefined ? fingerprint : `${step}:${name}`;
  const options = { scope: ["agent", run], fingerprint };
  const { value } = await idempotency.run(key, options, ({ signal }) => tool(signal, `${run}:${key}`));
  return value;
}
