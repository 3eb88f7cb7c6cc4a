import { checkNames } from "../check.ts";
import { generated, idFromBody, requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import type { ToleranceOptions } from "./tolerance.ts";
import { uncheckedHmacProvider } from "./unchecked-hmac-provider.ts";

/** Options of {@link linear}; `tolerance` is 60 000 (one minute) by default. */
export interface LinearOptions extends ToleranceOptions {
  /** The webhook's signing secret, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * `"body"`: the id is the SHA-256 of the body, which is signed, without its `webhookTimestamp`, which is the time
   * of sending. `"header"`: the id is `Linear-Delivery`, which is not signed. Default `"body"`.
   */
  readonly id?: "header" | "body" | undefined;
  /**
   * The provider's name in the scope of keys. Default `"linear"` and a tag of the secrets, which keeps senders with
   * different secrets apart. With a name of your own the secrets are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof LinearOptions, 1>> = {
  secret: 1,
  id: 1,
  tolerance: 1,
  now: 1,
  name: 1,
};

/**
 * Linear's webhooks: `Linear-Signature` is the hex HMAC-SHA256 of the body. The id is the body's hash; `deliveryId`
 * is `Linear-Delivery`, which the signature does not cover. The signed time is the body's `webhookTimestamp`.
 *
 * Linear waits 5 s for an answer, accepts only 200, and retries after 1 minute, 1 hour and 6 hours.
 *
 * @throws {TypeError} at once: a secret is empty or contains white space, or an option is unknown
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * const provider = linear({ secret: env.LINEAR_WEBHOOK_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function linear(options: LinearOptions): WebhookProvider {
  checkNames("linear", options, optionNames);
  const { name, tolerance = 60_000, now } = options;
  return uncheckedHmacProvider({
    name: name ?? "linear",
    tagSecrets: name === undefined,
    secret: requireForms("secret", options.secret, generated),
    header: "linear-signature",
    time: { field: "webhookTimestamp" },
    id: idFromBody(options.id) ? undefined : { header: "linear-delivery" },
    deliveryId: "linear-delivery",
    tolerance,
    now,
  });
}
