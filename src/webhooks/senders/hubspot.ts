import { bodyHash, isObjectOrArray } from "../body.ts";
import { decodeBase64 } from "../encoding.ts";
import { malformed, requireHeader, requireSignature } from "../header.ts";
import { urlOf } from "../option-checks.ts";
import type { SecretOptions, ToleranceOptions, UrlOptions } from "../options.ts";
import { badSignature, type WebhookProvider } from "../provider.ts";
import { type Given, sender } from "../sender.ts";
import type { SignedRequest } from "../verifier.ts";

const timeHeader = "x-hubspot-request-timestamp";

/**
 * HubSpot's requests: `X-HubSpot-Signature-v3` is the base64 HMAC-SHA256 of method, URL, body and the time in
 * `X-HubSpot-Request-Timestamp`. HubSpot signs no id that is unique: the id is the hash of method, URL and body, without
 * each event's `attemptNumber`, which counts the retries. The older signatures v1 and v2 are ignored.
 *
 * A request contains up to 100 events, and HubSpot does not say that a retry has equal ones: where one event must be
 * handled once, use its fields in a run of its own.
 *
 * @param options `secret`: the app's client secret. `url`: with the query that HubSpot adds, if any
 * @throws {TypeError} at once: an option is unknown or not of its form
 *
 * @example
 * const provider = hubspot({ secret: env.HUBSPOT_CLIENT_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function hubspot(options: SecretOptions & UrlOptions & ToleranceOptions): WebhookProvider {
  return sender("hubspot", options, {
    retries: 24 * 3_600_000,
    url: "optional",
    tolerance: 300_000,
    read: readRequest,
  });
}

function readRequest({ name, url = urlOf }: Given, request: Request, body: Uint8Array): SignedRequest {
  const form = { decode: decodeBase64, length: 32 };
  const signatures = requireSignature(name, request, "x-hubspot-signature-v3", form);
  const time = requireHeader(name, request, timeHeader);
  // Of a fixed length: no digit of the body can be read as a part of the time.
  if (!/^\d{13}$/.test(time)) throw malformed(name, timeHeader, "is not a time of 13 digits");
  const to = url(request);
  const before = request.method + decodeUrl(to);
  return {
    signatures,
    signed: [before, body, time],
    url: to,
    timestamp: Number(time),
    async open() {
      // The other way round, a body without a quotation mark could stand at the end of a URL.
      const isWhole = body.length === 0 ? !/[\]}]$/.test(before) : isObjectOrArray(body);
      if (!isWhole) throw badSignature(name, "what is signed is not a URL and a JSON object or array");
      // Cut out of the text: parsed, large ids would lose digits.
      const content = new TextDecoder().decode(body).replaceAll(/"attemptNumber"\s*:\s*\d+/g, "");
      return { id: await bodyHash(new TextEncoder().encode(before + content)) };
    },
  };
}

/** The URL as HubSpot signs it: these characters are not encoded. */
function decodeUrl(url: string): string {
  return url.replace(/%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi, decodeURIComponent);
}
