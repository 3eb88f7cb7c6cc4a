import { sha256 } from "../../runtime/bytes.ts";
import { encodeBytes } from "../encoding.ts";
import { requireJwt } from "../jwt.ts";
import type { IdOptions, SecretOptions, ToleranceOptions, UrlOptions } from "../options.ts";
import type { WebhookProvider } from "../provider.ts";
import { type Given, sender } from "../sender.ts";
import { clockSkew } from "../tolerance.ts";
import type { SignedRequest } from "../verifier.ts";

/**
 * Upstash QStash's messages: `Upstash-Signature` is a JWT (HS256) with the hash of the body. Its issuer, its times and
 * the hash are compared, and the URL if you give it. A delivery is accepted from its `nbf` to its `exp`, 5 minutes
 * later. The JWT contains no id of the message, so you must choose one:
 *
 * - `id: "header"`: `Upstash-Message-Id`, which is equal in every retry, but not signed: anyone who captured a delivery can
 *   repeat it under new ids while its JWT is valid.
 * - `id: "body"`: the body's hash. Two messages with equal bodies are one, so each must contain an id of your own. Never use it
 *   for schedules, whose bodies are all equal.
 *
 * @param options `secret`: the current and the next signing key. With two and no `name`, every delivery costs two runs. `url`:
 * the one that the messages are published to: deliveries that were signed for another one (`sub`) are refused. Default: not
 * compared, as in QStash's own library. `tolerance`: how far the clocks may differ, default 10 000
 * @throws {TypeError} at once: an option is unknown, missing or not of its form
 *
 * @example
 * const secret = [env.QSTASH_CURRENT_SIGNING_KEY, env.QSTASH_NEXT_SIGNING_KEY];
 * const provider = qstash({ secret, id: "header", name: "qstash" });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function qstash(
  options: SecretOptions & Required<IdOptions> & UrlOptions & ToleranceOptions,
): WebhookProvider {
  return sender("qstash", options, {
    url: "optional",
    deliveryId: "Upstash-Message-Id",
    idOption: "required",
    tolerance: clockSkew,
    read: readJwt,
  });
}

function readJwt({ name, url }: Given, request: Request, body: Uint8Array): SignedRequest {
  const { signatures, signed, open } = requireJwt(name, request, "upstash-signature", "HS256");
  return {
    signatures,
    signed,
    async open() {
      const hash = encodeBytes(await sha256(body), "base64url");
      // With or without padding, as QStash's own library accepts it.
      return open({ iss: "Upstash", body: [hash, `${hash}=`], ...(url && { sub: url(request) }) });
    },
  };
}
