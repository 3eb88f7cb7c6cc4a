import { sha256 } from "../bytes.ts";
import { checkNames } from "../check.ts";
import { encodeBytes } from "./encode.ts";
import { deliveryIdIn, requireId } from "./header.ts";
import { requireJwt } from "./jwt.ts";
import { generated, idFromBody, requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import type { SignedRequest } from "./signature-options.ts";
import type { ToleranceOptions } from "./tolerance.ts";
import { uncheckedSignatureProvider } from "./unchecked-signature-provider.ts";
import { type SignedUrl, urlOption } from "./url.ts";

/**
 * Options of {@link qstash}. A delivery is accepted from its `nbf` to its `exp`, 5 minutes later; `tolerance` is how far
 * the clocks may differ, 10 000 (10 seconds) by default.
 */
export interface QStashOptions extends ToleranceOptions {
  /** The current and the next signing key: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * `"header"`: the id is `Upstash-Message-Id`, which is the same in every retry, but not signed: who captured a
   * delivery can repeat it under new ids while its JWT is valid, for 5 minutes. `"body"`: the id is the SHA-256 of the
   * body, which is signed: two messages with equal bodies are one, so each must contain an id of your own; never use it
   * for schedules, whose bodies are all equal. There is no default, because either may be wrong.
   */
  readonly id: "header" | "body";
  /**
   * The URL that the messages are published to. Deliveries that QStash signed for another one (`sub`) are refused.
   * Default: not compared, as in QStash's own library.
   */
  readonly url?: SignedUrl | undefined;
  /**
   * The provider's name in the scope of keys. Default `"qstash"` and a tag of each key, and with two keys every delivery
   * costs two runs. With a name of your own the keys are left out: give each account its own name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof QStashOptions, 1>> = {
  secret: 1,
  id: 1,
  url: 1,
  tolerance: 1,
  now: 1,
  name: 1,
};

const idHeader = "upstash-message-id";

/**
 * Upstash QStash's messages: `Upstash-Signature` is a JWT (HS256) with the hash of the body. Its issuer, its times and
 * the hash are compared, and the URL if you give it. It contains no id of the message: see `id`.
 *
 * @throws {TypeError} at once: a key is empty or contains white space, `id` is missing, or an option is unknown
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * const secret = [env.QSTASH_CURRENT_SIGNING_KEY, env.QSTASH_NEXT_SIGNING_KEY];
 * const provider = qstash({ secret, id: "header", name: "qstash" });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function qstash(options: QStashOptions): WebhookProvider {
  checkNames("qstash", options, optionNames);
  const { name = "qstash", tolerance, now } = options;
  if (options.id === undefined) {
    throw new TypeError(
      'id must be "header" (Upstash-Message-Id, which is not signed) or "body" (the body\'s hash)',
    );
  }
  const fromBody = idFromBody(options.id);
  const url = options.url === undefined ? undefined : urlOption(options.url);

  function read(request: Request, body: Uint8Array): SignedRequest {
    const { signatures, signed, open } = requireJwt(name, request, "upstash-signature", "HS256");
    const id = fromBody ? undefined : requireId(name, request, idHeader);
    return {
      signatures,
      signed,
      id,
      idSigned: fromBody,
      ...deliveryIdIn(request, [idHeader]),
      async open() {
        // Stryker disable next-line StringLiteral: what is neither `hex` nor `base64` means that
        const hash = encodeBytes(await sha256(body), "base64url");
        // With or without padding, as QStash's own library accepts it.
        return open({ iss: "Upstash", body: [hash, `${hash}=`], ...(url && { sub: url(request) }) });
      },
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
