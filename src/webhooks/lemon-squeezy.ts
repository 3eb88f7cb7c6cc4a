import { checkNames } from "../check.ts";
import { requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import { uncheckedHmacProvider } from "./unchecked-hmac-provider.ts";

/** Options of {@link lemonSqueezy}. */
export interface LemonSqueezyOptions {
  /** The webhook's signing secret, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * The provider's name in the scope of keys. Default `"lemon-squeezy"` and a tag of the secrets, which keeps senders with
   * different secrets apart. With a name of your own the secrets are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof LemonSqueezyOptions, 1>> = { secret: 1, name: 1 };

/**
 * Lemon Squeezy's webhooks: `X-Signature` is the hex HMAC-SHA256 of the body. Neither an id nor a time is signed. The id
 * is the body's hash. `X-Event-Name` is not signed: the event's name is in the body, `meta.event_name`.
 *
 * Lemon Squeezy accepts only 200, and retries after 5, 25 and 125 s.
 *
 * @throws {TypeError} at once: a secret is empty or not a string, or an option is unknown
 *
 * @example
 * const provider = lemonSqueezy({ secret: env.LEMON_SQUEEZY_SECRET });
 * const { id } = await provider.verify(request, body);
 */
export function lemonSqueezy(options: LemonSqueezyOptions): WebhookProvider {
  checkNames("lemonSqueezy", options, optionNames);
  return uncheckedHmacProvider({
    name: options.name ?? "lemon-squeezy",
    tagSecrets: options.name === undefined,
    secret: requireForms("secret", options.secret),
    header: "x-signature",
  });
}
