import { checkNames } from "../check.ts";
import { bodyId } from "./body.ts";
import { decodeBase64 } from "./decode.ts";
import { generated, requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import { requireSignature } from "./signature.ts";
import { uncheckedSignatureProvider } from "./unchecked-signature-provider.ts";
import { type SignedUrl, urlOption } from "./url.ts";

/** Options of {@link square}. */
export interface SquareOptions {
  /** The subscription's signature key, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * The subscription's notification URL, which is signed, exactly as Square shows it. It is not taken from the request:
   * nothing separates URL and body in what is signed, so the request must not decide where the body begins.
   */
  readonly url: SignedUrl;
  /**
   * The provider's name in the scope of keys. Default `"square"` and a tag of the secrets, which keeps senders with
   * different secrets apart. With a name of your own the secrets are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof SquareOptions, 1>> = { secret: 1, url: 1, name: 1 };

/**
 * Square's webhooks: `x-square-hmacsha256-signature` is the base64 HMAC-SHA256 of the notification URL and the body. The
 * id is the body's `event_id`. Square signs no time of sending. The older `x-square-signature` (SHA-1) is ignored.
 *
 * @throws {TypeError} at once: a secret is empty or contains white space, `url` is missing, or an option is unknown
 *
 * @example
 * const provider = square({ secret: env.SQUARE_SIGNATURE_KEY, url: "https://shop.example/webhooks/square" });
 * const { id } = await provider.verify(request, body);
 */
export function square(options: SquareOptions): WebhookProvider {
  checkNames("square", options, optionNames);
  const { name = "square" } = options;
  const url = urlOption(options.url ?? null);
  const form = { decode: decodeBase64, length: 32 };

  return uncheckedSignatureProvider({
    name,
    algorithm: "HMAC-SHA256",
    tagSecrets: options.name === undefined,
    key: requireForms("secret", options.secret, generated),
    read: (request, body) => ({
      signatures: requireSignature(name, request, "x-square-hmacsha256-signature", form),
      signed: [url(request), body],
      open: async () => ({ id: await bodyId(body, "event_id") }),
    }),
  });
}
