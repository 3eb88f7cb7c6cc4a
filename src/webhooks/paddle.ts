import { checkNames } from "../check.ts";
import { generated, requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import type { ToleranceOptions } from "./tolerance.ts";
import { uncheckedHmacProvider } from "./unchecked-hmac-provider.ts";

/** Options of {@link paddle}; `tolerance` is 5 000 (5 seconds) by default, as in Paddle's own libraries. */
export interface PaddleOptions extends ToleranceOptions {
  /** The notification destination's secret key, `pdl_ntfset_…`, or several while it is being rotated. */
  readonly secret: string | readonly string[];
  /**
   * The provider's name in the scope of keys. Default `"paddle"` and a tag of the secrets, which keeps senders with
   * different secrets apart. With a name of your own the secrets are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof PaddleOptions, 1>> = { secret: 1, tolerance: 1, now: 1, name: 1 };

/**
 * Paddle Billing's notifications: `Paddle-Signature` holds the time `ts` and one or several signatures `h1`, each the
 * hex HMAC-SHA256 of `ts:body`. One `h1` that holds is enough. The id is the body's `event_id`, which a replay has,
 * too, under another `notification_id`. Paddle Classic signs in another way and is refused.
 *
 * Paddle waits 5 s for an answer, accepts only 200, and retries 60 times within 3 days.
 *
 * @throws {TypeError} at once: a secret is empty or contains white space, or an option is unknown
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * const provider = paddle({ secret: env.PADDLE_WEBHOOK_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function paddle(options: PaddleOptions): WebhookProvider {
  checkNames("paddle", options, optionNames);
  return uncheckedHmacProvider({
    name: options.name ?? "paddle",
    tagSecrets: options.name === undefined,
    secret: requireForms("secret", options.secret, generated),
    header: "paddle-signature",
    prefix: "h1=",
    separator: ";",
    signedText: "{time}:{body}",
    time: { entry: "ts=" },
    id: { field: "event_id" },
    tolerance: options.tolerance ?? 5_000,
    now: options.now,
  });
}
