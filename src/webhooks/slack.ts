import { checkNames } from "../check.ts";
import { generated, requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import type { ToleranceOptions } from "./tolerance.ts";
import { uncheckedHmacProvider } from "./unchecked-hmac-provider.ts";

/** Options of {@link slack}; `tolerance` is 300 000 (5 minutes) by default. */
export interface SlackOptions extends ToleranceOptions {
  /** The app's signing secret, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * The provider's name in the scope of keys. Default `"slack"` and a tag of the secrets, which keeps senders with
   * different secrets apart. With a name of your own the secrets are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof SlackOptions, 1>> = { secret: 1, tolerance: 1, now: 1, name: 1 };

/**
 * Slack's requests: `X-Slack-Signature` is `v0=` and the hex HMAC-SHA256 of `v0:time:body`, with the time from
 * `X-Slack-Request-Timestamp`. The id is the body's `event_id`, or else the hash of the body: the bodies of slash
 * commands and interactions differ by an id of their own, and `url_verification` gets the same answer each time.
 *
 * Slack waits 3 s for an answer and sends an event three more times: at once, after 1 minute and after 5 minutes.
 *
 * @throws {TypeError} at once: a secret is empty or contains white space, or an option is unknown
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * const provider = slack({ secret: env.SLACK_SIGNING_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function slack(options: SlackOptions): WebhookProvider {
  checkNames("slack", options, optionNames);
  return uncheckedHmacProvider({
    name: options.name ?? "slack",
    tagSecrets: options.name === undefined,
    secret: requireForms("secret", options.secret, generated),
    header: "x-slack-signature",
    prefix: "v0=",
    signedText: "v0:{time}:{body}",
    time: { header: "x-slack-request-timestamp" },
    id: { field: "event_id" },
    tolerance: options.tolerance,
    now: options.now,
  });
}
