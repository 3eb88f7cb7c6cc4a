import { checkNames } from "../check.ts";
import { bodyId } from "./body.ts";
import {
  generated,
  requireBytes,
  requireForm,
  requireForms,
  requireHeader,
  type WebhookProvider,
} from "./provider.ts";
import { secretTags } from "./secret-tag.ts";
import { badSignature, decodeHex, requireSignature, signatureCheck } from "./signature.ts";
import { parseSeconds, type ToleranceOptions, toleranceCheck } from "./tolerance.ts";

/** Options of {@link slack}; `tolerance` is 300 000 (5 minutes) by default. */
export interface SlackOptions extends ToleranceOptions {
  /** The app's signing secret, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * Stands for this sender in the scope of keys. Default `"slack"` and a tag of the secrets, so that senders with
   * secrets of their own are apart; a name of your own leaves the secrets out: then give each sender one.
   */
  readonly name?: string | undefined;
}

const timestampHeader = "x-slack-request-timestamp";

const names: Readonly<Record<keyof SlackOptions, 1>> = { secret: 1, tolerance: 1, now: 1, name: 1 };

/**
 * Slack's requests: `X-Slack-Signature`, `v0=` and the hex HMAC-SHA256 of `v0:time:body`, with the time from
 * `X-Slack-Request-Timestamp`. The id is the body's `event_id`, or else the hash of the body: slash commands
 * and interactions bring an id of their own in it, and `url_verification` is to be answered the same each time.
 *
 * Slack waits 3 s for an answer and sends an event three times more: at once, after 1 and after 5 minutes.
 *
 * @throws {TypeError} at once, when a secret is empty or has white space in it.
 * @throws {RangeError} at once, when `tolerance` is out of range.
 *
 * @example
 * const provider = slack({ secret: env.SLACK_SIGNING_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function slack(options: SlackOptions): WebhookProvider {
  checkNames("slack", options, names);
  const name = requireForm("name", options.name ?? "slack");
  const secrets = requireForms("secret", options.secret, generated);
  const signed = signatureCheck("HMAC-SHA256", secrets);
  const tags = secretTags(options.name, secrets);
  const checkTolerance = toleranceCheck(name, options, 300_000);

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const signature = requireSignature(name, request, "x-slack-signature", "v0=", decodeHex, 32);
      const seconds = requireHeader(name, request, timestampHeader);
      const timestamp = parseSeconds(name, timestampHeader, seconds);
      checkTolerance(timestamp);
      if (!(await signed(signature, body, `v0:${seconds}:`))) throw badSignature(name);
      return { id: await bodyId(body, "event_id"), timestamp, idSigned: true, ...(await tags()) };
    },
  };
}
