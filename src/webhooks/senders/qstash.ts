import { sha256 } from "../../runtime/bytes.ts";
import { encodeBytes } from "../encoding.ts";
import { requireJwt } from "../jwt.ts";
import type { IdOptions, SecretOptions, ToleranceOptions, UrlOptions } from "../options.ts";
import type { WebhookProvider } from "../provider.ts";
import { type Given, sender } from "../sender.ts";
import { clockSkew } from "../tolerance.ts";
import type { SignedRequest } from "../verifier.ts";

/**
 * Upstash QStash's messages: `Upstash-Signature` is a JWT with the body's hash, valid for 5 minutes. It has no id, so
 * you must choose one:
 *
 * - `id: "header"`: `Upstash-Message-Id`, equal in every retry but not signed, so anyone with a captured delivery can
 *   repeat it under new ids while its JWT is valid.
 * - `id: "body"`: the body's hash, so each message needs an id of its own. Never use it for schedules, whose bodies are
 *   all equal.
 *
 * @param options `secret`: the current and the next signing key. With two and no `name`, every delivery costs two runs.
 * `url`: deliveries that were signed for another URL are refused. Default: any URL. `tolerance`: how far the clocks may
 * differ, default 10 000
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const secret = [env.QSTASH_CURRENT_SIGNING_KEY, env.QSTASH_NEXT_SIGNING_KEY];
 * const provider = qstash({ secret, id: "header", name: "qstash" });
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
      // QStash's own library accepts both.
      return open({ iss: "Upstash", body: [hash, `${hash}=`], ...(url && { sub: url(request) }) });
    },
  };
}
