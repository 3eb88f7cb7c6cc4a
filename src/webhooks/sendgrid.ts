import { checkNames } from "../check.ts";
import { decodeBase64, decodeDer, decodePublicKey } from "./decode.ts";
import { requireHeader } from "./header.ts";
import { requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import { requireSignature } from "./signature.ts";
import { parseSeconds, type ToleranceOptions } from "./tolerance.ts";
import { uncheckedSignatureProvider } from "./unchecked-signature-provider.ts";

/** Options of {@link sendgrid}; without a `tolerance` deliveries of any age are accepted. */
export interface SendGridOptions extends ToleranceOptions {
  /** The webhook's verification key, base64 with or without the lines of a PEM, or several. */
  readonly publicKey: string | readonly string[];
  /**
   * The provider's name in the scope of keys. Default `"sendgrid"` and a tag of the keys, which keeps senders with
   * different keys apart. With a name of your own the keys are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const timestampHeader = "x-twilio-email-event-webhook-timestamp";

const optionNames: Readonly<Record<keyof SendGridOptions, 1>> = {
  publicKey: 1,
  tolerance: 1,
  now: 1,
  name: 1,
};

/**
 * SendGrid's Event Webhook: `X-Twilio-Email-Event-Webhook-Signature` is the ECDSA signature (P-256, DER, base64) of the
 * time in `X-Twilio-Email-Event-Webhook-Timestamp` and the body. No id is signed for a delivery, which is a list of
 * events. The id is the body's hash. An event may come again in another list: where one event must be handled once, use
 * its `sg_event_id` in a run of its own. SendGrid names no tolerance, so none is applied unless you give one.
 *
 * @throws {TypeError} at once: a public key is not the base64 of a key on P-256, or an option is unknown
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * const provider = sendgrid({ publicKey: env.SENDGRID_PUBLIC_KEY });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function sendgrid(options: SendGridOptions): WebhookProvider {
  checkNames("sendgrid", options, optionNames);
  const { name = "sendgrid", tolerance, now } = options;
  const form = { decode: (text: string) => decodeDer(decodeBase64(text)) };

  return uncheckedSignatureProvider(
    {
      name,
      algorithm: "ECDSA-P256-SHA256",
      tagSecrets: options.name === undefined,
      key: requireForms("publicKey", options.publicKey).map(decodeP256),
      tolerance,
      now,
      read(request, body) {
        const signatures = requireSignature(name, request, "x-twilio-email-event-webhook-signature", form);
        const seconds = requireHeader(name, request, timestampHeader);
        const timestamp = parseSeconds(name, timestampHeader, seconds);
        return { signatures, signed: [seconds, body], timestamp };
      },
    },
    Number.POSITIVE_INFINITY,
  );
}

/** A public key whose SPKI says that it is a point on P-256, not compressed. */
function decodeP256(text: string): Uint8Array {
  const spki = decodePublicKey(text);
  if (spki.length === 91 && btoa(String.fromCharCode(...spki.subarray(0, 27))) === p256) return spki;
  throw new TypeError("publicKey must be a key on P-256 (is it the right variable, and all of it?)");
}

/** What is in front of the point: the algorithm, the curve, and that both coordinates follow. */
const p256 = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE";
