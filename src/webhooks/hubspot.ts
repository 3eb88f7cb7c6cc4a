import { checkNames } from "../check.ts";
import { bodyHash } from "./body.ts";
import { decodeBase64 } from "./decode.ts";
import { malformed, requireHeader } from "./header.ts";
import { generated, requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import { badSignature, requireSignature } from "./signature.ts";
import type { SignedRequest } from "./signature-options.ts";
import type { ToleranceOptions } from "./tolerance.ts";
import { uncheckedSignatureProvider } from "./unchecked-signature-provider.ts";
import { type SignedUrl, urlOption } from "./url.ts";

/** Options of {@link hubspot}; `tolerance` is 300 000 (5 minutes) by default. */
export interface HubSpotOptions extends ToleranceOptions {
  /** The app's client secret, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * The URL as you gave it to HubSpot, with the query that HubSpot adds, if any. Default: the request's; give it where
   * a proxy changes scheme, host, port or path.
   */
  readonly url?: SignedUrl | undefined;
  /**
   * The provider's name in the scope of keys. Default `"hubspot"` and a tag of the secrets, which keeps senders with
   * different secrets apart. With a name of your own the secrets are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof HubSpotOptions, 1>> = {
  secret: 1,
  url: 1,
  tolerance: 1,
  now: 1,
  name: 1,
};

const timestampHeader = "x-hubspot-request-timestamp";

/**
 * HubSpot's requests: `X-HubSpot-Signature-v3` is the base64 HMAC-SHA256 of method, URL, body and the time in
 * `X-HubSpot-Request-Timestamp`. HubSpot signs no id that is unique: the id is the hash of method, URL and body, without
 * each event's `attemptNumber`, which counts the retries. The older signatures v1 and v2 are ignored.
 *
 * A request contains up to 100 events, and HubSpot does not say that a retry has the same ones: where one event must be
 * handled once, use its fields in a run of its own.
 *
 * @throws {TypeError} at once: a secret is empty or contains white space, `url` is no URL, or an option is unknown
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * const provider = hubspot({ secret: env.HUBSPOT_CLIENT_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function hubspot(options: HubSpotOptions): WebhookProvider {
  checkNames("hubspot", options, optionNames);
  const { name = "hubspot", tolerance, now } = options;
  const url = urlOption(options.url);
  const form = { decode: decodeBase64, length: 32 };

  function read(request: Request, body: Uint8Array): SignedRequest {
    const signatures = requireSignature(name, request, "x-hubspot-signature-v3", form);
    const time = requireHeader(name, request, timestampHeader);
    // Of a fixed length: no digit of the body can be read as a part of the time.
    if (!/^\d{13}$/.test(time)) throw malformed(name, timestampHeader, "is not a time of 13 digits");
    const before = request.method + decodeUrl(url(request));
    return {
      signatures,
      signed: [before, body, time],
      timestamp: Number(time),
      open: async () => ({ id: await bodyHash(new TextEncoder().encode(before + contentOf(name, body))) }),
    };
  }

  const key = requireForms("secret", options.secret, generated);
  const tagSecrets = options.name === undefined;
  return uncheckedSignatureProvider({
    name,
    algorithm: "HMAC-SHA256",
    key,
    tagSecrets,
    tolerance,
    now,
    read,
  });
}

/** The URL as HubSpot signs it: these characters are not encoded. */
function decodeUrl(url: string): string {
  return url.replace(/%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi, decodeURIComponent);
}

/**
 * A body without its attempt numbers. They are cut out of the text: parsed, large ids would lose digits.
 *
 * @throws {WebhookVerificationError} it is neither empty nor JSON. HubSpot sends no other body: the beginning of one was
 * moved into the URL, which nothing separates from it in what is signed.
 */
function contentOf(name: string, body: Uint8Array): string {
  const text = new TextDecoder().decode(body);
  try {
    if (text !== "") JSON.parse(text);
  } catch {
    throw badSignature(name, "what is signed is not a URL and JSON");
  }
  return text.replaceAll(/"attemptNumber"\s*:\s*\d+/g, "");
}
