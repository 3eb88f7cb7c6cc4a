import { checkNames } from "../check.ts";
import { parseTime } from "../runtime.ts";
import { decodeHex } from "./decode.ts";
import { malformed, requireHeader, requireId } from "./header.ts";
import { requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import { requireSignature } from "./signature.ts";
import type { SignedRequest } from "./signature-options.ts";
import type { ToleranceOptions } from "./tolerance.ts";
import { uncheckedSignatureProvider } from "./unchecked-signature-provider.ts";

/** Options of {@link twitch}; `tolerance` is 600 000 (10 minutes) by default. */
export interface TwitchOptions extends ToleranceOptions {
  /** The secret of your subscriptions, 10 to 100 ASCII characters, or several while it is being rotated. */
  readonly secret: string | readonly string[];
  /**
   * The provider's name in the scope of keys. Default `"twitch"` and a tag of the secrets, which keeps senders with
   * different secrets apart. With a name of your own the secrets are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof TwitchOptions, 1>> = { secret: 1, tolerance: 1, now: 1, name: 1 };

const timestampHeader = "twitch-eventsub-message-timestamp";

/**
 * Twitch's EventSub: `Twitch-Eventsub-Message-Signature` is `sha256=` and the hex HMAC-SHA256 of the id in
 * `Twitch-Eventsub-Message-Id`, the time in `Twitch-Eventsub-Message-Timestamp` and the body. The id is the message's,
 * which is signed and stays the same when Twitch sends it again. `Twitch-Eventsub-Message-Type` is not signed: the body
 * of a challenge has a `challenge`, which is the answer, and the body of an event has an `event`.
 *
 * Twitch waits a few seconds for an answer, and revokes subscriptions whose answers are late too often.
 *
 * @throws {TypeError} at once: a secret is not 10 to 100 ASCII characters, or an option is unknown
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * const provider = twitch({ secret: env.TWITCH_EVENTSUB_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function twitch(options: TwitchOptions): WebhookProvider {
  checkNames("twitch", options, optionNames);
  const { name = "twitch", tolerance, now } = options;
  const form = { prefix: "sha256=", decode: decodeHex, length: 32 };

  function read(request: Request, body: Uint8Array): SignedRequest {
    const signatures = requireSignature(name, request, "twitch-eventsub-message-signature", form);
    const id = requireId(name, request, "twitch-eventsub-message-id");
    const time = requireHeader(name, request, timestampHeader);
    return { signatures, signed: [id, time, body], id, timestamp: readTime(name, time) };
  }

  const key = requireForms("secret", options.secret, /^[\x20-\x7e]{10,100}$/);
  const tagSecrets = options.name === undefined;
  return uncheckedSignatureProvider(
    { name, algorithm: "HMAC-SHA256", key, tagSecrets, tolerance, now, read },
    600_000,
  );
}

/**
 * A time such as `2023-07-19T14:56:51.634234626Z`, in ms. In exactly this form, nothing of id or body can be read as a
 * part of the time, nor the reverse: nothing separates them in what is signed.
 */
function readTime(name: string, time: string): number {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/.exec(time);
  if (!match) throw malformed(name, timestampHeader, "is not a time in UTC");
  const [, seconds, fraction = ""] = match;
  // Stryker disable next-line MethodExpression: Node reads more than three digits; other engines need not
  return parseTime(`${seconds}.${fraction.slice(0, 3).padEnd(3, "0")}Z`);
}
