import { checkNames } from "../check.ts";
import { bodyId } from "./body.ts";
import {
  malformed,
  requireBytes,
  requireForm,
  requireForms,
  requireHeader,
  type WebhookProvider,
} from "./provider.ts";
import { secretTags } from "./secret-tag.ts";
import { badSignature, decodeHex, mostSignatures, signatureCheck, signaturesOf } from "./signature.ts";
import { parseSeconds, type ToleranceOptions, toleranceCheck } from "./tolerance.ts";

/** Options of {@link stripe}; `tolerance` is 300 000 (5 minutes) by default. */
export interface StripeOptions extends ToleranceOptions {
  /** The endpoint's signing secret, `whsec_…`, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * Stands for this sender in the scope of keys. Default `"stripe"` and a tag of the secrets, so that senders with
   * secrets of their own are apart; a name of your own leaves the secrets out: then give each sender one.
   */
  readonly name?: string | undefined;
}

const header = "stripe-signature";

const names: Readonly<Record<keyof StripeOptions, 1>> = { secret: 1, tolerance: 1, now: 1, name: 1 };

/**
 * Stripe's events, snapshot and thin: `Stripe-Signature` with the time `t` and one or several signatures `v1`,
 * each the hex HMAC-SHA256 of `t.body`; other schemes are passed over, one that fits is enough. The secret is
 * used as it stands, `whsec_` included. The id is the body's `id`.
 *
 * Stricter than Stripe's library, which lets any time in the future pass and reads some headers generously.
 *
 * Stripe retries for up to 3 days; how long it waits for an answer is not published.
 *
 * @throws {TypeError} at once, when a secret does not begin with `whsec_` or has white space in it.
 * @throws {RangeError} at once, when `tolerance` is out of range.
 *
 * @example
 * const provider = stripe({ secret: env.STRIPE_WEBHOOK_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function stripe(options: StripeOptions): WebhookProvider {
  checkNames("stripe", options, names);
  const name = requireForm("name", options.name ?? "stripe");
  const secrets = requireForms("secret", options.secret, /^whsec_\S+$/);
  const signed = signatureCheck("HMAC-SHA256", secrets);
  const tags = secretTags(options.name, secrets);
  const checkTolerance = toleranceCheck(name, options, 300_000);

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const entries = requireHeader(name, request, header).split(",");
      const times = entries.filter((entry) => entry.startsWith("t="));
      const signatures = signaturesOf(entries, "v1=", decodeHex, 32);
      if (entries.length > mostSignatures || times.length !== 1 || signatures.length === 0) {
        throw malformed(name, header, `is not one t and 1 to ${mostSignatures - 1} signatures v1`);
      }
      const seconds = times[0]!.slice(2);
      const timestamp = parseSeconds(name, header, seconds);
      checkTolerance(timestamp);
      if (!(await signed(signatures, body, `${seconds}.`))) throw badSignature(name);
      return { id: await bodyId(body, "id"), timestamp, idSigned: true, ...(await tags()) };
    },
  };
}
