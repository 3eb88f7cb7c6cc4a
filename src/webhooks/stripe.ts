import { checkNames } from "../check.ts";
import { requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import type { ToleranceOptions } from "./tolerance.ts";
import { uncheckedHmacProvider } from "./unchecked-hmac-provider.ts";

/** Options of {@link stripe}; `tolerance` is 300 000 (5 minutes) by default. */
export interface StripeOptions extends ToleranceOptions {
  /** The endpoint's signing secret, `whsec_…`, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * The provider's name in the scope of keys. Default `"stripe"` and a tag of the secrets, which keeps senders with
   * different secrets apart. With a name of your own the secrets are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof StripeOptions, 1>> = { secret: 1, tolerance: 1, now: 1, name: 1 };

/**
 * Stripe's events, snapshot and thin: `Stripe-Signature` holds the time `t` and one or several signatures `v1`, each
 * the hex HMAC-SHA256 of `t.body`. One `v1` that holds is enough; other schemes are skipped. The secret is used as it
 * is, including `whsec_`. The id is the body's `id`.
 *
 * Stricter than Stripe's library, which accepts any time in the future and reads some headers leniently.
 *
 * Stripe retries for up to 3 days; how long it waits for an answer is not published.
 *
 * @throws {TypeError} at once: a secret does not begin with `whsec_` or contains white space, or an option is unknown
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * const provider = stripe({ secret: env.STRIPE_WEBHOOK_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function stripe(options: StripeOptions): WebhookProvider {
  checkNames("stripe", options, optionNames);
  return uncheckedHmacProvider({
    name: options.name ?? "stripe",
    tagSecrets: options.name === undefined,
    secret: requireForms("secret", options.secret, /^whsec_\S+$/),
    header: "stripe-signature",
    prefix: "v1=",
    separator: ",",
    signedText: "{time}.{body}",
    time: { entry: "t=" },
    id: { field: "id" },
    tolerance: options.tolerance,
    now: options.now,
  });
}
