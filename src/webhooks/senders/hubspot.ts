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
 * HubSpot's requests, signed in `X-HubSpot-Signature-v3`. The id is the hash of method, URL and body, without
 * `attemptNumber`. If one of a request's events must be handled once, run under its own fields: a retry may have
 * others.
 *
 * @param options `secret`: the app's client secret. `url`: with the query that HubSpot adds, if any
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = hubspot({ secret: env.HUBSPOT_CLIENT_SECRET });
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
  // Of a fixed length, so no digit of the body can be read as a part of the time.
  if (!/^\d{13}$/.test(time)) throw malformed(name, timeHeader, "is not a time of 13 digits");
  const to = url(request);
  const before = request.method + decodeUrl(to);
  return {
    signatures,
    signed: [before, body, time],
    url: to,
    timestamp: Number(time),
    async open() {
      // Without a body, JSON at the end of the URL could have been moved there.
      const isWhole = body.length === 0 ? !/[\]}]$/.test(before) : isObjectOrArray(body);
      if (!isWhole) throw badSignature(name, "what is signed is not a URL and a JSON object or array");
      // Parsing would lose digits of large ids.
      const content = new TextDecoder().decode(body).replaceAll(/"attemptNumber"\s*:\s*\d+/g, "");
      return { id: await bodyHash(new TextEncoder().encode(before + content)) };
    },
  };
}

/** HubSpot signs the URL with these characters decoded. */
function decodeUrl(url: string): string {
  return url.replace(/%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi, decodeURIComponent);
}
